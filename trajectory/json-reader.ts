// A strict JSON reader over the bytes of one row (which are valid UTF-8: checked before). It refuses what RFC 8259 refuses and,
// beyond it, duplicate keys, numbers that overflow, lone surrogates and deep nesting - at every depth, in unknown fields too.
// Duplicate keys, non-finite numbers and lone surrogates are noted and reading goes on; the rest ends it.
import { describe } from './fault.ts'
import { type Cursor, Stop, unexpected } from './json-cursor.ts'
import { readNumber } from './json-number.ts'
import { readString } from './json-string.ts'
import {
  BROKEN,
  formatPath,
  type JsonFault,
  type JsonObject,
  type JsonReading,
  type JsonValue,
} from './json-value.ts'

/** Levels of nesting read before the row is refused; CPython's json gives up near 1000 too. */
const MAX_DEPTH = 900

/** Reads the one JSON value in `bytes[start, end)`. Never throws for a bad text. */
export function readJson(bytes: Buffer, start: number, end: number): JsonReading {
  const cursor: Cursor = { bytes, at: start, end, path: [], faults: [] }
  try {
    const value = readValue(cursor)
    skipSpace(cursor)
    if (cursor.at < end) throw unexpected(cursor, start)
    return { value, faults: cursor.faults }
  } catch (stop) {
    if (!(stop instanceof Stop)) throw stop
    return {
      value: undefined,
      faults: [...cursor.faults, { rule: stop.rule, path: null, found: stop.found }],
    }
  }
}

function readValue(cursor: Cursor): JsonValue {
  skipSpace(cursor)
  const { bytes, at, end } = cursor
  if (at >= end) throw unexpected(cursor)
  switch (bytes[at]) {
    case 0x7b:
      return readObject(cursor)
    case 0x5b:
      return readArray(cursor)
    case 0x22: {
      const text = readString(cursor)
      return text.isWellFormed() ? text : note(cursor, 'string.lone_surrogate', describe(text))
    }
    case 0x74:
      return readWord(cursor, 'true', true)
    case 0x66:
      return readWord(cursor, 'false', false)
    case 0x6e:
      return readWord(cursor, 'null', null)
    case 0x4e: // Python's encoder writes NaN and Infinity
      readWord(cursor, 'NaN', null)
      return note(cursor, 'json.nonfinite', 'NaN')
    case 0x49:
      readWord(cursor, 'Infinity', null)
      return note(cursor, 'json.nonfinite', 'Infinity')
    default:
      return readSigned(cursor)
  }
}

function readSigned(cursor: Cursor): JsonValue {
  if (cursor.bytes[cursor.at] === 0x2d && cursor.bytes[cursor.at + 1] === 0x49) {
    readWord(cursor, '-Infinity', null)
    return note(cursor, 'json.nonfinite', '-Infinity')
  }
  const number = readNumber(cursor)
  if (typeof number !== 'object' || Number.isFinite(number.value)) return number
  return note(cursor, 'json.nonfinite', describe(number))
}

function readObject(cursor: Cursor): JsonObject {
  const object: JsonObject = Object.create(null)
  enter(cursor)
  if (peek(cursor) === 0x7d) return leave(cursor, object)
  while (true) {
    if (peek(cursor) !== 0x22) throw unexpected(cursor)
    const key = readString(cursor)
    cursor.path.push(key)
    const isSound = noteKey(cursor, object, key)
    if (peek(cursor) !== 0x3a) throw unexpected(cursor)
    cursor.at++
    const value = readValue(cursor)
    if (isSound) object[key] = value
    cursor.path.pop()
    const next = peek(cursor)
    if (next === 0x7d) return leave(cursor, object)
    if (next !== 0x2c) throw unexpected(cursor)
    cursor.at++
  }
}

/** @returns whether the key is to be kept: a broken one is reported here and not again as unknown. */
function noteKey(cursor: Cursor, object: JsonObject, key: string): boolean {
  if (!key.isWellFormed()) {
    note(cursor, 'string.lone_surrogate', describe(key))
    return false
  }
  if (key in object) note(cursor, 'json.duplicate_key', describe(key))
  return true
}

function readArray(cursor: Cursor): JsonValue[] {
  const items: JsonValue[] = []
  enter(cursor)
  if (peek(cursor) === 0x5d) return leave(cursor, items)
  while (true) {
    cursor.path.push(items.length)
    items.push(readValue(cursor))
    cursor.path.pop()
    const next = peek(cursor)
    if (next === 0x5d) return leave(cursor, items)
    if (next !== 0x2c) throw unexpected(cursor)
    cursor.at++
  }
}

function enter(cursor: Cursor): void {
  if (cursor.path.length >= MAX_DEPTH) throw new Stop('json.depth', `more than ${MAX_DEPTH} levels`)
  cursor.at++
}

function leave<T>(cursor: Cursor, value: T): T {
  cursor.at++
  return value
}

function readWord<T>(cursor: Cursor, word: string, value: T): T {
  const stop = cursor.at + word.length
  if (stop > cursor.end || cursor.bytes.toString('latin1', cursor.at, stop) !== word) throw unexpected(cursor)
  cursor.at = stop
  return value
}

/** The byte after white space, -1 at the end. JSON's white space only: no form feed, no no-break space. */
function peek(cursor: Cursor): number {
  skipSpace(cursor)
  return cursor.at < cursor.end ? (cursor.bytes[cursor.at] ?? -1) : -1
}

function skipSpace(cursor: Cursor): void {
  const { bytes, end } = cursor
  let at = cursor.at
  while (at < end) {
    const byte = bytes[at]
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d && byte !== 0x0a) break
    at++
  }
  cursor.at = at
}

function note(cursor: Cursor, rule: JsonFault['rule'], found: string): typeof BROKEN {
  cursor.faults.push({ rule, path: formatPath(cursor.path), found })
  return BROKEN
}
