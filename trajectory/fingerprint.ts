// 64-bit fingerprints of identifiers: HalfSipHash-2-4 under a key drawn afresh for each file, so that no file can be written to
// collide. Two of a million ids share one with probability 3e-8.
import { randomBytes } from 'node:crypto'

export interface Fingerprinter {
  /** Fingerprints `bytes[start, end)`; the halves are then in `high` and `low`. Never 0, 0. */
  of(bytes: Uint8Array, start: number, end: number): void
  high: number
  low: number
}

/** @param key 8 bytes; random by default */
export function createFingerprinter(key: Buffer = randomBytes(8)): Fingerprinter {
  const k0 = key.readInt32LE(0)
  const k1 = key.readInt32LE(4)
  let v0 = 0
  let v1 = 0
  let v2 = 0
  let v3 = 0

  const rounds = (count: number) => {
    for (let round = 0; round < count; round++) {
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
    }
  }
  const absorb = (word: number) => {
    v3 ^= word
    rounds(2)
    v0 ^= word
  }

  const result: Fingerprinter = {
    high: 0,
    low: 0,
    of(bytes, start, end) {
      v0 = k0
      v1 = k1 ^ 0xee
      v2 = 0x6c796765 ^ k0
      v3 = 0x74656462 ^ k1
      const whole = end - ((end - start) & 3)
      const byte = (at: number) => bytes[at] as number // at < end
      for (let i = start; i < whole; i += 4) {
        absorb(byte(i) | (byte(i + 1) << 8) | (byte(i + 2) << 16) | (byte(i + 3) << 24))
      }
      let last = (end - start) << 24
      for (let i = whole; i < end; i++) last |= byte(i) << (8 * (i - whole))
      absorb(last)
      v2 ^= 0xee
      rounds(4)
      result.low = (v1 ^ v3) >>> 0
      v1 ^= 0xdd
      rounds(4)
      result.high = (v1 ^ v3) >>> 0
      if (result.low === 0 && result.high === 0) result.low = 1
    },
  }
  return result
}
