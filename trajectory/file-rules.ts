// The rules that need the other episodes of a file: unique episode ids, consistent groups. Memory: 8 bytes an episode and 20 a
// group (over the load of the tables), whatever the size of the rows.
import { createFingerprinter } from './fingerprint.ts'
import { createFingerprintMap } from './fingerprint-map.ts'
import type { PartName } from './part-cache.ts'

/** A stretch of bytes. */
export interface Stretch {
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
}

/** What of an episode must agree within its group; the parts by the number of their identity. */
export type GroupFacts = Readonly<Record<PartName, number>> & {
  readonly group: Stretch
  readonly task: Stretch
}

/** A bit each for what differs from the first episode of the group. */
export const DIFFERS = { task: 1, policy: 2, harness: 4, reward: 8 } as const

export interface FileRules {
  /** The number of an identity, equal for equal texts. */
  intern(canonical: string): number
  /** @returns whether the episode id was there before */
  addEpisode(id: Stretch): boolean
  /** @returns what differs from the group's first episode, as bits of DIFFERS */
  addToGroup(facts: GroupFacts): number
  readonly groups: number
}

export function createFileRules(): FileRules {
  const print = createFingerprinter()
  const episodes = createFingerprintMap(0)
  const groups = createFingerprintMap(3) // task (64 bits), number of the triple
  const identities = createFingerprintMap(1)
  const triples = createTriples()

  return {
    intern(canonical) {
      const bytes = Buffer.from(canonical)
      print.of(bytes, 0, bytes.length)
      const isKnown = identities.locate(print.high, print.low)
      if (!isKnown) identities.words[identities.at] = identities.size
      return identities.words[identities.at] as number // located above
    },
    addEpisode({ bytes, start, end }) {
      print.of(bytes, start, end)
      return episodes.locate(print.high, print.low)
    },
    addToGroup({ group, task, policy, harness, reward }) {
      print.of(task.bytes, task.start, task.end)
      const { high, low } = print
      const triple = triples.numberOf(policy, harness, reward)
      print.of(group.bytes, group.start, group.end)
      const isKnown = groups.locate(print.high, print.low)
      const { words, at } = groups
      if (!isKnown) {
        words[at] = high
        words[at + 1] = low
        words[at + 2] = triple
        return 0
      }
      const isSameTask = words[at] === high && words[at + 1] === low
      return (isSameTask ? 0 : DIFFERS.task) | triples.difference(words[at + 2] as number, triple) // located above
    },
    get groups() {
      return groups.size
    },
  }
}

/** Numbers for triples of policy, harness and reward; few in a usual file, so that a group needs to keep one number. */
function createTriples() {
  const numbers = new Map<string, number>()
  const parts: [number, number, number][] = []
  let last = -1
  return {
    numberOf(policy: number, harness: number, reward: number): number {
      const known = parts[last]
      if (known !== undefined && known[0] === policy && known[1] === harness && known[2] === reward)
        return last
      const key = `${policy},${harness},${reward}`
      let number = numbers.get(key)
      if (number === undefined) {
        number = parts.push([policy, harness, reward]) - 1
        numbers.set(key, number)
      }
      last = number
      return number
    },
    difference(one: number, other: number): number {
      if (one === other) return 0
      const [a, b] = [parts[one], parts[other]]
      if (a === undefined || b === undefined) return 0 // both were given out by numberOf
      const bits = [DIFFERS.policy, DIFFERS.harness, DIFFERS.reward]
      return bits.reduce((sum, bit, index) => (a[index] === b[index] ? sum : sum | bit), 0)
    },
  }
}
