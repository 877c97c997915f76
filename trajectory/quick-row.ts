// The quick check of a row: bytes in, yes or "ask the strict reader" out. It builds no value. Whatever it says yes to, the strict
// reader and the rules of check-record.ts find no fault in: a property test holds it to that.
import type { PartCache } from './part-cache.ts'
import { type ListFacts, skipIntegers, skipLogprobs, skipMask } from './skip-list.ts'
import { isAt, skipObject, toKeys } from './skip-object.ts'
import { NO, skipInteger, skipLongText, skipName, skipSpace } from './skip-token.ts'
import { CONTEXT_ROLES, FINISH_REASONS, SCHEMA_VERSION, SOURCE_KINDS } from './words.ts'

const EPISODE = toKeys([
  ...['schema_version', 'episode_id', 'task_id', 'group_id', 'seed'],
  ...['source_kind', 'policy', 'harness', 'reward', 'calls'],
])
const CALL = toKeys(
  [
    ...[
      'call_id',
      'prompt_token_ids',
      'response_token_ids',
      'response_role',
      'response_loss_mask',
      'finish_reason',
    ],
    ...['context', 'behavior_logprobs'],
  ],
  7,
)
const MESSAGE = toKeys(['role', 'content'])

const quoted = (words: readonly string[]) => words.map((word) => Buffer.from(`"${word}"`))
const VERSION = quoted([SCHEMA_VERSION])
const KINDS = quoted(SOURCE_KINDS)
const REASONS = quoted(FINISH_REASONS)
const ROLES = quoted(CONTEXT_ROLES)
const ASSISTANT = quoted(['assistant'])

/** Bytes with rows in them, and the same bytes as a view. PADDING bytes follow the last line feed. */
export interface Page {
  readonly bytes: Buffer
  readonly view: DataView
}

/** Where the identifiers of the last row stand: start and end of the text within the quotes. */
export interface RowMarks {
  episodeStart: number
  episodeEnd: number
  taskStart: number
  taskEnd: number
  groupStart: number
  groupEnd: number
}

export interface Parts {
  readonly policy: PartCache
  readonly harness: PartCache
  readonly reward: PartCache
}

export interface QuickRow {
  /** Whether the row at `start`, which ends before the line feed at `end`, is plainly valid. It must be valid UTF-8. */
  isValid(page: Page, start: number, end: number): boolean
  /** Of the last valid row. */
  readonly marks: RowMarks
}

export function createQuickRow(parts: Parts): QuickRow {
  const marks: RowMarks = {
    episodeStart: 0,
    episodeEnd: 0,
    taskStart: 0,
    taskEnd: 0,
    groupStart: 0,
    groupEnd: 0,
  }
  const view: { current: DataView } = { current: new DataView(new ArrayBuffer(0)) }
  const skipCalls = createSkipCalls(view)

  const skipField = (bytes: Buffer, at: number, key: number): number => {
    switch (key) {
      case 0:
        return skipWord(bytes, at, VERSION)
      case 1:
        marks.episodeStart = at + 1
        marks.episodeEnd = skipQuotedName(bytes, at) - 1
        return marks.episodeEnd < 0 ? NO : marks.episodeEnd + 1
      case 2:
        marks.taskStart = at + 1
        marks.taskEnd = skipQuotedName(bytes, at) - 1
        return marks.taskEnd < 0 ? NO : marks.taskEnd + 1
      case 3:
        marks.groupStart = at + 1
        marks.groupEnd = skipQuotedName(bytes, at) - 1
        return marks.groupEnd < 0 ? NO : marks.groupEnd + 1
      case 4:
        return skipInteger(bytes, at)
      case 5:
        return skipWord(bytes, at, KINDS)
      case 6:
        return parts.policy.skip(bytes, at)
      case 7:
        return parts.harness.skip(bytes, at)
      case 8:
        return parts.reward.skip(bytes, at)
      default:
        return skipCalls(bytes, at)
    }
  }

  return {
    marks,
    isValid(page, start, end) {
      const { bytes } = page
      view.current = page.view
      const after = skipObject(bytes, skipSpace(bytes, start), EPISODE, skipField)
      return after > 0 && skipSpace(bytes, after) === end
    },
  }
}

function createSkipCalls(view: { readonly current: DataView }): (bytes: Buffer, at: number) => number {
  const facts: ListFacts = { length: 0, ones: 0 }
  const skipContext = createSkipContext(view)
  const call = { idStart: 0, idEnd: 0, response: 0, mask: 0, ones: 0, logprobs: 0 }

  const skipField = (bytes: Buffer, at: number, key: number): number => {
    let end = NO
    switch (key) {
      case 0:
        call.idStart = at
        end = skipQuotedName(bytes, at)
        call.idEnd = end
        return end
      case 1:
        return skipIntegers(bytes, view.current, at, facts)
      case 2:
        end = skipIntegers(bytes, view.current, at, facts)
        call.response = facts.length
        return end
      case 3:
        return skipWord(bytes, at, ASSISTANT)
      case 4:
        end = skipMask(bytes, view.current, at, facts)
        call.mask = facts.length
        call.ones = facts.ones
        return end
      case 5:
        return skipWord(bytes, at, REASONS)
      case 6:
        return skipContext(bytes, at)
      default:
        end = skipLogprobs(bytes, view.current, at, facts)
        call.logprobs = facts.length
        return end
    }
  }

  return (bytes, at) => {
    if (bytes[at] !== 0x5b) return NO
    let ones = 0
    let ids: Set<string> | undefined
    let lastId = ''
    let i = at
    do {
      call.logprobs = NO
      i = skipObject(bytes, skipSpace(bytes, i + 1), CALL, skipField)
      if (i < 0 || call.mask !== call.response || (call.logprobs >= 0 && call.logprobs !== call.response))
        return NO
      ones += call.ones
      i = skipSpace(bytes, i)
      const isOnly = ids === undefined && lastId === '' && bytes[i] === 0x5d
      if (isOnly) break
      const id = bytes.toString('latin1', call.idStart, call.idEnd)
      if (id === lastId || ids?.has(id) === true) return NO
      if (lastId !== '') {
        ids ??= new Set([lastId])
        ids.add(id)
      }
      lastId = id
    } while (bytes[i] === 0x2c)
    return bytes[i] === 0x5d && ones > 0 ? i + 1 : NO
  }
}

function createSkipContext(view: { readonly current: DataView }): (bytes: Buffer, at: number) => number {
  const skipField = (bytes: Buffer, at: number, key: number): number => {
    if (key === 0) return skipWord(bytes, at, ROLES)
    return bytes[at] === 0x22 ? skipLongText(bytes, view.current, at + 1) : NO
  }
  return (bytes, at) => {
    if (bytes[at] !== 0x5b) return NO
    let i = skipSpace(bytes, at + 1)
    if (bytes[i] === 0x5d) return i + 1
    while (true) {
      i = skipObject(bytes, i, MESSAGE, skipField)
      if (i < 0) return NO
      i = skipSpace(bytes, i)
      if (bytes[i] === 0x5d) return i + 1
      if (bytes[i] !== 0x2c) return NO
      i = skipSpace(bytes, i + 1)
    }
  }
}

function skipQuotedName(bytes: Buffer, at: number): number {
  return bytes[at] === 0x22 ? skipName(bytes, at + 1) : NO
}

/** One of a few quoted words. */
function skipWord(bytes: Buffer, at: number, words: readonly Buffer[]): number {
  for (const word of words) if (isAt(bytes, at, word)) return at + word.length
  return NO
}
