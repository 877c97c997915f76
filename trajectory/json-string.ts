// String tokens of the strict reader.
import { type Cursor, Stop, unexpected } from './json-cursor.ts'

/** Reads the string at the cursor, which stands on its opening quote. The result may hold lone surrogates.
 *  @throws Stop for a raw control character, a bad escape or a missing end. */
export function readString(cursor: Cursor): string {
  const { bytes, end } = cursor
  const start = cursor.at
  let at = start + 1
  let isEscaped = false
  while (at < end) {
    const byte = bytes[at] as number // at < end
    if (byte === 0x22) break
    if (byte < 0x20)
      throw new Stop('json.syntax', `the raw control character 0x${byte.toString(16).padStart(2, '0')}`)
    if (byte === 0x5c) {
      isEscaped = true
      at = skipEscape(cursor, at)
    } else at++
  }
  cursor.at = at
  if (at >= end) throw unexpected(cursor)
  cursor.at = at + 1
  // The token was checked above, so that JSON.parse only unescapes it.
  return isEscaped ? JSON.parse(bytes.toString('utf8', start, at + 1)) : bytes.toString('utf8', start + 1, at)
}

function skipEscape(cursor: Cursor, at: number): number {
  const { bytes, end } = cursor
  const kind = at + 1 < end ? String.fromCharCode(bytes[at + 1] as number) : '' // at + 1 < end
  if (kind !== '' && '"\\/bfnrt'.includes(kind)) return at + 2
  const isUnicode =
    kind === 'u' && at + 6 <= end && /^[0-9A-Fa-f]{4}$/.test(bytes.toString('latin1', at + 2, at + 6))
  if (isUnicode) return at + 6
  cursor.at = at
  throw unexpected(cursor)
}
