// Number tokens of the strict reader: the grammar of RFC 8259, integers exact, fractions and exponents kept apart.
import { type Cursor, Stop, unexpected } from './json-cursor.ts'
import { Real } from './json-value.ts'

/** Digits of an integer read at most, as in CPython: longer ones cost quadratic time there. */
const MAX_DIGITS = 4300
/** Integers of so many digits are exact as a double. */
const EXACT_DIGITS = 15

/** Reads the number at the cursor. `-0` is the integer 0; a Real may be infinite.
 *  @throws Stop for what is no JSON number or an integer of more than 4300 digits. */
export function readNumber(cursor: Cursor): number | bigint | Real {
  const { bytes } = cursor
  const start = cursor.at
  const isNegative = bytes[start] === 0x2d
  const first = isNegative ? start + 1 : start
  let at = skipDigits(cursor, first)
  const digits = at - first
  if (digits > 1 && bytes[first] === 0x30) throw new Stop('json.syntax', 'a number with a leading zero')
  let isReal = false
  if (at < cursor.end && bytes[at] === 0x2e) {
    isReal = true
    at = skipDigits(cursor, at + 1)
  }
  if (at < cursor.end && (bytes[at] === 0x65 || bytes[at] === 0x45)) {
    isReal = true
    const sign = at + 1 < cursor.end ? bytes[at + 1] : 0
    at = skipDigits(cursor, sign === 0x2b || sign === 0x2d ? at + 2 : at + 1)
  }
  if (!isReal && digits > MAX_DIGITS) throw new Stop('json.syntax', `an integer of ${digits} digits`)
  cursor.at = at
  const text = bytes.toString('latin1', start, at)
  if (isReal) return new Real(Number(text), text)
  return digits <= EXACT_DIGITS ? Number(text) + 0 : toInteger(BigInt(text))
}

function toInteger(value: bigint): number | bigint {
  const isSafe = value <= BigInt(Number.MAX_SAFE_INTEGER) && value >= BigInt(Number.MIN_SAFE_INTEGER)
  return isSafe ? Number(value) : value
}

/** At least one digit is wanted. */
function skipDigits(cursor: Cursor, from: number): number {
  let at = from
  while (at < cursor.end && isDigit(cursor.bytes[at])) at++
  if (at > from) return at
  cursor.at = from
  throw unexpected(cursor)
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39
}
