// A map from 64-bit fingerprints to a few 32-bit words each, for tens of millions of entries: open addressing in flat arrays, cut
// into segments that grow one by one, so that growing never needs twice the memory. 8 bytes an entry and 4 a word, at 3/4 load.

const SEGMENTS = 256
const FIRST_SLOTS = 16
const MAX_LOAD = 0.85
const GROWTH = 1.5

interface Segment {
  words: Uint32Array
  slots: number
  used: number
}

export interface FingerprintMap {
  /** Finds or makes the entry of a fingerprint that is not 0, 0. Its values are then `words[at]` and on; new ones are 0.
   *  @returns whether it was there */
  locate(high: number, low: number): boolean
  words: Uint32Array
  at: number
  size: number
}

/** @param values 32-bit words kept with each fingerprint */
export function createFingerprintMap(values: number): FingerprintMap {
  const stride = 2 + values
  const segments: Segment[] = Array.from({ length: SEGMENTS }, () => emptySegment(FIRST_SLOTS, stride))

  const map: FingerprintMap = {
    words: new Uint32Array(0),
    at: 0,
    size: 0,
    locate(high, low) {
      const segment = segments[high >>> 24] as Segment // 256 segments
      if (segment.used + 1 > segment.slots * MAX_LOAD) grow(segment, stride)
      const at = findSlot(segment, stride, high, low)
      map.words = segment.words
      map.at = at + 2
      if (segment.words[at] !== 0 || segment.words[at + 1] !== 0) return true
      segment.words[at] = high
      segment.words[at + 1] = low
      segment.used++
      map.size++
      return false
    },
  }
  return map
}

function emptySegment(slots: number, stride: number): Segment {
  return { words: new Uint32Array(slots * stride), slots, used: 0 }
}

/** Index of the entry, or of the free slot where it belongs. */
function findSlot(segment: Segment, stride: number, high: number, low: number): number {
  const { words, slots } = segment
  let slot = Math.floor((low / 0x100000000) * slots)
  while (true) {
    const at = slot * stride
    const [foundHigh, foundLow] = [words[at], words[at + 1]]
    if ((foundHigh === high && foundLow === low) || (foundHigh === 0 && foundLow === 0)) return at
    slot = slot + 1 === slots ? 0 : slot + 1
  }
}

function grow(segment: Segment, stride: number): void {
  const bigger = emptySegment(Math.ceil(segment.slots * GROWTH), stride)
  for (let at = 0; at < segment.words.length; at += stride) {
    const high = segment.words[at] as number // within the array
    const low = segment.words[at + 1] as number
    if (high === 0 && low === 0) continue
    bigger.words.set(segment.words.subarray(at, at + stride), findSlot(bigger, stride, high, low))
  }
  segment.words = bigger.words
  segment.slots = bigger.slots
}
