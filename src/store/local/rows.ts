// Rows of the index that hold results, each with a checksum: SQLite keeps its pages consistent but does not see a
// flipped bit in a value, and a wrong output digest must never be served. Pure.

import type { SQLInputValue } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import { type ActionResult, RESULT_SCHEMA } from '../../model/result.ts'

export interface ResultRows {
  /** Of `results`: what a lookup needs. */
  readonly result: readonly SQLInputValue[]
  /** Of `records`: the whole result. */
  readonly record: readonly SQLInputValue[]
}

export function toRows(result: ActionResult): ResultRows {
  const { actionDigest: key, tree } = result
  const outputs = JSON.stringify(result.outputs)
  const record = JSON.stringify(result)
  return {
    result: [key, tree, outputs, sumOf(tree + outputs)],
    record: [key, record, crc32(record), result.record.log?.digest ?? null],
  }
}

/** Checksum of a row of `results`: of its tree's digest and its outputs, joined. A damaged key is never asked for. */
export function sumOf(text: string): number {
  return crc32(text)
}

/** The result in a row of `records`; undefined where the row is damaged or of another schema. */
export function parseRecord(record: string, sum: number): ActionResult | undefined {
  if (crc32(record) !== sum) return undefined
  // Written by toRows, as the checksum says; the schema is the version of that form.
  const result = JSON.parse(record) as ActionResult
  return result.schema === RESULT_SCHEMA ? result : undefined
}
