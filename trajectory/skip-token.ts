// Byte-level steps over JSON tokens for the quick check: each takes the index where a token starts and returns the index after it,
// or NO. NO means "not plainly right", not "wrong": the strict reader then judges the row and says what is the matter.
// Invariant: the row is followed by a line feed, which no step passes, so no step needs to look at the end of the buffer; that is
// also why `bytes[at] as number` is right here.
import { plainTextEnd } from './skip-word.ts'

export const NO = -1

/** The first index from `at` on that is not JSON white space; a row holds no line feed. */
export function skipSpace(bytes: Uint8Array, at: number): number {
  let i = at
  let byte = bytes[i] as number
  while (byte === 0x20 || byte === 0x09 || byte === 0x0d) byte = bytes[++i] as number
  return i
}

/** A string from after its opening quote to after its closing one. Surrogate escapes must come in pairs. */
export function skipText(bytes: Uint8Array, at: number): number {
  let i = at
  while (true) {
    const byte = bytes[i++] as number
    if (byte === 0x22) return i
    if (byte === 0x5c) {
      i = skipEscape(bytes, i)
      if (i < 0) return NO
    } else if (byte < 0x20) return NO
  }
}

/** As skipText, quicker on long text. */
export function skipLongText(bytes: Uint8Array, view: DataView, at: number): number {
  let i = at
  while (true) {
    i = plainTextEnd(view, i)
    const byte = bytes[i++] as number
    if (byte === 0x22) return i
    if (byte === 0x5c) {
      i = skipEscape(bytes, i)
      if (i < 0) return NO
    } else if (byte < 0x20) return NO
  }
}

/** A string without escapes that holds a visible ASCII character, so that it is a nonempty identifier. */
export function skipName(bytes: Uint8Array, at: number): number {
  let i = at
  let isVisible = false
  while (true) {
    const byte = bytes[i++] as number
    if (byte === 0x22) return isVisible ? i : NO
    if (byte === 0x5c || byte < 0x20) return NO
    if (byte > 0x20 && byte < 0x7f) isVisible = true
  }
}

/** From after a backslash. */
function skipEscape(bytes: Uint8Array, at: number): number {
  switch (bytes[at]) {
    case 0x22:
    case 0x2f:
    case 0x5c:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return at + 1
    case 0x75:
      break
    default:
      return NO
  }
  const unit = readHex(bytes, at + 1)
  if (unit < 0) return NO
  if (unit < 0xd800 || unit > 0xdfff) return at + 5
  if (unit > 0xdbff || bytes[at + 5] !== 0x5c || bytes[at + 6] !== 0x75) return NO
  const low = readHex(bytes, at + 7)
  return low >= 0xdc00 && low <= 0xdfff ? at + 11 : NO
}

/** Four hex digits as a number. */
function readHex(bytes: Uint8Array, at: number): number {
  let unit = 0
  for (let i = at; i < at + 4; i++) {
    const byte = bytes[i] as number
    let digit = byte - 0x30
    if (digit > 9) digit = (byte | 0x20) - 0x57
    if (digit < 0 || digit > 15 || (byte > 0x39 && digit < 10)) return NO
    unit = unit * 16 + digit
  }
  return unit
}

/** A nonnegative integer of at most 15 digits, which a double holds exactly. */
export function skipInteger(bytes: Uint8Array, at: number): number {
  let i = at
  let byte = bytes[i] as number
  if (byte === 0x30) return i + 1
  if (byte < 0x31 || byte > 0x39) return NO
  do byte = bytes[++i] as number
  while (byte >= 0x30 && byte <= 0x39)
  return i - at > 15 ? NO : i
}

/** A finite number. */
export function skipNumber(bytes: Buffer, at: number): number {
  let i = bytes[at] === 0x2d ? at + 1 : at
  const first = i
  i = skipDigits(bytes, i)
  if (i < 0 || (bytes[first] === 0x30 && i > first + 1) || i - first > 300) return NO
  if (bytes[i] === 0x2e) {
    i = skipDigits(bytes, i + 1)
    if (i < 0) return NO
  }
  if (((bytes[i] as number) | 0x20) !== 0x65) return i
  const sign = bytes[i + 1]
  i = skipDigits(bytes, sign === 0x2b || sign === 0x2d ? i + 2 : i + 1)
  return i < 0 || !Number.isFinite(Number(bytes.toString('latin1', at, i))) ? NO : i
}

/** One digit or more. */
function skipDigits(bytes: Uint8Array, at: number): number {
  let i = at
  let byte = bytes[i] as number
  if (byte < 0x30 || byte > 0x39) return NO
  do byte = bytes[++i] as number
  while (byte >= 0x30 && byte <= 0x39)
  return i
}
