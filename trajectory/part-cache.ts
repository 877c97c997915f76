// Policy, harness and reward of a row, judged once for each distinct text: most rows of a file share them.
// Each gets the number of its identity, so that groups are compared by numbers.
import { checkHarness, checkPolicy, checkReward, isSound } from './check-record.ts'
import { readJson } from './json-reader.ts'
import { NO, skipNumber, skipSpace, skipText } from './skip-token.ts'

/** The parts of a row that must agree within a group, besides its task. */
export const PARTS = {
  policy: {
    check: checkPolicy,
    identity: ['model_id', 'revision', 'tokenizer_id', 'tokenizer_revision', 'chat_template_sha256'],
  },
  harness: { check: checkHarness, identity: ['name', 'version', 'revision'] },
  reward: { check: checkReward, identity: ['scorer', 'scorer_revision'] },
} as const
export type PartName = keyof typeof PARTS

/** Distinct texts remembered; a file with more is slower, not wrong. */
const MAX_TEXTS = 4096

export interface PartCache {
  /** The index after the part that starts at `at`, or NO; its identity is then in `identity`. */
  skip(bytes: Buffer, at: number): number
  identity: number
}

/** @param intern gives equal canonical texts equal numbers */
export function createPartCache(name: PartName, intern: (canonical: string) => number): PartCache {
  const { check } = PARTS[name]
  const known = new Map<string, number>()
  const holes = { start: 0, end: 0 }
  const cache: PartCache = {
    identity: 0,
    skip(bytes, at) {
      const end = skipFlat(bytes, at, holes)
      if (end < 0) return NO
      const text = textOf(bytes, at, end, holes)
      let identity = known.get(text)
      if (identity === undefined) {
        const { value, faults } = readJson(bytes, at, end)
        if (faults.length > 0 || !isSound(check, value)) return NO
        identity = intern(toCanonical(name, value as Record<string, unknown>)) // `check` found an object
        if (known.size >= MAX_TEXTS) known.clear()
        known.set(text, identity)
      }
      cache.identity = identity
      return end
    },
  }
  return cache
}

/** The identity of a sound part as text: equal for equal values however they were written. */
export function toCanonical(name: PartName, part: Readonly<Record<string, unknown>>): string {
  return JSON.stringify([name, ...PARTS[name].identity.map((key) => part[key])])
}

/** The text with its number, if it has one, cut out: a reward's value is no part of its identity. A line feed, which a row cannot
 *  hold, marks the cut. The number itself was judged by skipFlat. */
function textOf(
  bytes: Buffer,
  at: number,
  end: number,
  hole: { readonly start: number; readonly end: number },
): string {
  if (hole.end === 0) return bytes.toString('latin1', at, end)
  return `${bytes.toString('latin1', at, hole.start)}\n${bytes.toString('latin1', hole.end, end)}`
}

/** An object of strings and at most one number; its keys are judged by the strict reader when the text is new. */
function skipFlat(bytes: Buffer, at: number, hole: { start: number; end: number }): number {
  hole.end = 0
  if (bytes[at] !== 0x7b) return NO
  let i = at
  do {
    i = skipSpace(bytes, i + 1)
    if (bytes[i] !== 0x22) return NO
    i = skipText(bytes, i + 1)
    if (i < 0) return NO
    i = skipSpace(bytes, i)
    if (bytes[i] !== 0x3a) return NO
    i = skipSpace(bytes, i + 1)
    if (bytes[i] === 0x22) i = skipText(bytes, i + 1)
    else if (hole.end === 0) {
      hole.start = i
      i = skipNumber(bytes, i)
      hole.end = i
    } else return NO
    if (i < 0) return NO
    i = skipSpace(bytes, i)
  } while (bytes[i] === 0x2c)
  return bytes[i] === 0x7d ? i + 1 : NO
}
