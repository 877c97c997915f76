// Rows of a file to faults: the quick check first, the strict reader where it does not say yes, then the rules of the whole file.
import { isUtf8 } from 'node:buffer'
import type { Block } from './blocks.ts'
import { checkRecord, isSound } from './check-record.ts'
import { isObject } from './check-value.ts'
import { describe, type Fault, toFault } from './fault.ts'
import { createFileRules, DIFFERS, type GroupFacts, type Stretch } from './file-rules.ts'
import { isBlank } from './identifier.ts'
import { readJson } from './json-reader.ts'
import type { JsonValue } from './json-value.ts'
import { createPartCache, PARTS, type PartName, toCanonical } from './part-cache.ts'
import { createQuickRow } from './quick-row.ts'
import type { Trajectory } from './schema.ts'
import { toTrajectory } from './to-trajectory.ts'

/** Receives a sound row; `read` gives its episode. */
export type OnRow = (line: number, read: () => Trajectory) => void

export interface FileChecker {
  /** Checks the rows of the next block. @returns their faults; up to the first faulty row unless `all` */
  check(block: Block, all: boolean, onRow?: OnRow): Fault[]
  /** What is wrong once the file has ended. */
  finish(): Fault[]
  /** Sound rows so far. */
  readonly episodes: number
  readonly groups: number
}

export function createFileChecker(): FileChecker {
  const rules = createFileRules()
  const parts = {
    policy: createPartCache('policy', rules.intern),
    harness: createPartCache('harness', rules.intern),
    reward: createPartCache('reward', rules.intern),
  }
  const quick = createQuickRow(parts)
  let line = 0
  let episodes = 0

  const checkQuick = (bytes: Buffer): Fault[] => {
    const { marks } = quick
    const id = { bytes, start: marks.episodeStart, end: marks.episodeEnd }
    const facts = {
      group: { bytes, start: marks.groupStart, end: marks.groupEnd },
      task: { bytes, start: marks.taskStart, end: marks.taskEnd },
      policy: parts.policy.identity,
      harness: parts.harness.identity,
      reward: parts.reward.identity,
    }
    return checkAgainstFile(id, facts)
  }

  const checkAgainstFile = (id: Stretch | undefined, facts: GroupFacts | undefined): Fault[] => {
    const isTwice = id !== undefined && rules.addEpisode(id)
    const differs = facts === undefined ? 0 : rules.addToGroup(facts)
    if (!isTwice && differs === 0) return NONE
    const faults: Fault[] = []
    if (isTwice) faults.push(toFault('episode_id.duplicate', line, '$.episode_id', describe(toText(id))))
    if (facts === undefined) return faults
    const found = `${describe(toText(facts.group))} with another`
    for (const [name, bit] of Object.entries(DIFFERS)) {
      const path = name === 'task' ? '$.task_id' : `$.${name}`
      if ((differs & bit) !== 0)
        faults.push(toFault('group.inconsistent', line, path, `group ${found} ${WORDS[name]}`))
    }
    return faults
  }

  const checkStrictly = (
    bytes: Buffer,
    from: number,
    end: number,
  ): { value: JsonValue | undefined; faults: Fault[] } => {
    const faults: Fault[] = []
    const add = (rule: Fault['rule'], path: string | null, found: string) =>
      void faults.push(toFault(rule, line, path, found))
    const start = line === 1 && hasBom(bytes, from, end) ? from + 3 : from
    if (start > from) add('file.bom', null, '')
    const row = bytes.subarray(start, end)
    if (!isUtf8(row)) {
      add('file.encoding', null, describeBadByte(row))
      return { value: undefined, faults }
    }
    if (isBlankRow(row)) {
      add('file.blank_line', null, '')
      return { value: undefined, faults }
    }
    const { value, faults: textFaults } = readJson(bytes, start, end)
    for (const { rule, path, found } of textFaults) add(rule, path, found)
    if (value === undefined) return { value, faults }
    checkRecord(value, add)
    if (isObject(value)) faults.push(...checkAgainstFile(idOf(value), factsOf(value, rules.intern)))
    return { value, faults }
  }

  return {
    check(block, all, onRow) {
      const faults: Fault[] = []
      const { bytes } = block
      const isText = isUtf8(bytes.subarray(block.start, block.end))
      for (let start = block.start; start < block.end; ) {
        const end = bytes.indexOf(0x0a, start)
        line++
        const from = start
        start = end + 1
        if (isText && quick.isValid(block, from, end)) {
          const found = checkQuick(bytes)
          if (found.length > 0) faults.push(...found)
          else {
            episodes++
            // The quick check found no duplicate key, no big integer and no -0 in an integer's place: JSON.parse loses nothing.
            onRow?.(line, () => JSON.parse(bytes.toString('utf8', from, end)))
          }
        } else {
          const { value, faults: found } = checkStrictly(bytes, from, end)
          for (const fault of found) faults.push(fault)
          if (found.length === 0) {
            episodes++
            onRow?.(line, () => toTrajectory(value))
          }
        }
        if (faults.length > 0 && !all) break
      }
      return faults
    },
    finish() {
      return line === 0 ? [toFault('file.empty', 0, null, '')] : []
    },
    get episodes() {
      return episodes
    },
    get groups() {
      return rules.groups
    },
  }
}

const NONE: Fault[] = []

const WORDS: Readonly<Record<string, string>> = {
  task: 'task',
  policy: 'policy',
  harness: 'harness',
  reward: 'scorer',
}

function toText({ bytes, start, end }: Stretch): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8')
}

function toStretch(text: unknown): Stretch | undefined {
  if (typeof text !== 'string' || !text.isWellFormed() || isBlank(text)) return undefined
  const bytes = Buffer.from(text)
  return { bytes, start: 0, end: bytes.length }
}

function idOf(value: Readonly<Record<string, unknown>>): Stretch | undefined {
  return toStretch(value['episode_id'])
}

/** What the row says of its group; undefined where any of it is faulty, so that one fault is not reported as two. */
function factsOf(
  value: Readonly<Record<string, unknown>>,
  intern: (canonical: string) => number,
): GroupFacts | undefined {
  const group = toStretch(value['group_id'])
  const task = toStretch(value['task_id'])
  if (group === undefined || task === undefined) return undefined
  const numbers = { policy: 0, harness: 0, reward: 0 }
  for (const name of Object.keys(numbers) as PartName[]) {
    const part = value[name]
    if (!isObject(part) || !isSound(PARTS[name].check, part)) return undefined
    numbers[name] = intern(toCanonical(name, part))
  }
  return { group, task, ...numbers }
}

function hasBom(bytes: Buffer, start: number, end: number): boolean {
  return end - start >= 3 && bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf
}

function isBlankRow(row: Buffer): boolean {
  return row.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}

/** The first byte that breaks UTF-8, found by halving: every prefix up to it, cut at a character, is sound. */
function describeBadByte(row: Buffer): string {
  let good = 0
  let bad = row.length
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    if (isUtf8(row.subarray(0, cutAtCharacter(row, middle)))) good = middle
    else bad = middle
  }
  const at = cutAtCharacter(row, good)
  const shown = [...row.subarray(at, at + 4)].map((byte) => `0x${byte.toString(16).padStart(2, '0')}`)
  return `${shown.join(' ')} at byte ${at + 1} of the row`
}

/** The start of the character that `at` would cut in two. */
function cutAtCharacter(row: Buffer, at: number): number {
  let start = at
  while (start > 0 && start > at - 3 && ((row[start] ?? 0) & 0xc0) === 0x80) start--
  return start
}
