// The byte-level step over an object with known keys, in any order, none twice.
import { NO, skipSpace } from './skip-token.ts'

/** The keys of an object, each with its closing quote, and which of them must be there (a bit each). */
export interface Keys {
  readonly names: readonly Uint8Array[]
  readonly required: number
}

/** Steps over the value of key number `key` that starts at `at`. */
export type SkipValue = (bytes: Buffer, at: number, key: number) => number

export function toKeys(names: readonly string[], required = names.length): Keys {
  return { names: names.map((name) => Buffer.from(`${name}"`)), required: 2 ** required - 1 }
}

/** From the opening brace to after the closing one. */
export function skipObject(bytes: Buffer, at: number, keys: Keys, skipValue: SkipValue): number {
  if (bytes[at] !== 0x7b) return NO
  let i = skipSpace(bytes, at + 1)
  let seen = 0
  let guess = 0
  while (bytes[i] === 0x22) {
    const key = matchKey(bytes, i + 1, keys.names, guess)
    if (key < 0 || (seen & (1 << key)) !== 0) return NO
    seen |= 1 << key
    guess = key + 1
    i = skipSpace(bytes, i + 1 + (keys.names[key] as Uint8Array).length) // matchKey gives an index of names
    if (bytes[i] !== 0x3a) return NO
    i = skipValue(bytes, skipSpace(bytes, i + 1), key)
    if (i < 0) return NO
    i = skipSpace(bytes, i)
    if (bytes[i] === 0x7d) return (seen & keys.required) === keys.required ? i + 1 : NO
    if (bytes[i] !== 0x2c) return NO
    i = skipSpace(bytes, i + 1)
  }
  return NO
}

/** Producers keep the order of their keys, so the one after the last is tried first. */
function matchKey(bytes: Uint8Array, at: number, names: readonly Uint8Array[], guess: number): number {
  const likely = names[guess]
  if (likely !== undefined && isAt(bytes, at, likely)) return guess
  for (let key = 0; key < names.length; key++) if (isAt(bytes, at, names[key] as Uint8Array)) return key // key < length
  return NO
}

/** Whether `text` stands at `at`. */
export function isAt(bytes: Uint8Array, at: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false
  return true
}
