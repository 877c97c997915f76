// Where the strict reader is, and how it stops. Nothing is read here.
import { describe } from './fault.ts'
import type { JsonFault } from './json-value.ts'

/** Where the reader is. The reading functions advance `at`. */
export interface Cursor {
  readonly bytes: Buffer
  at: number
  readonly end: number
  readonly path: (string | number)[]
  readonly faults: JsonFault[]
}

/** Ends the reading of a row; caught by readJson. */
export class Stop {
  readonly rule: 'json.syntax' | 'json.depth'
  readonly found: string

  constructor(rule: 'json.syntax' | 'json.depth', found: string) {
    this.rule = rule
    this.found = found
  }
}

/** What stands where something else was wanted; `start` given: after the end of a whole value. */
export function unexpected(cursor: Cursor, start?: number): Stop {
  if (cursor.at >= cursor.end) return new Stop('json.syntax', 'the end of the row')
  const near = cursor.bytes.toString('utf8', cursor.at, Math.min(cursor.end, cursor.at + 16))
  const where = start === undefined ? '' : ' after the end of the value'
  return new Stop('json.syntax', `${describe(near)}${where}`)
}
