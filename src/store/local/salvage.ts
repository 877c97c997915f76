// What a corrupt index still holds. Only rows that prove themselves are carried over: a result by its action digest,
// a manifest by its tree digest. Stat fingerprints are not: trees are hashed again when they are asked for.

import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { DatabaseSync as Connection } from 'node:sqlite'
import { actionDigest } from '../../model/action.ts'
import { sizeOf, type TreeEntry, treeDigest } from '../../model/tree.ts'
import { parseRecord, toRows } from './rows.ts'

/** Copies the sound rows of the database at `from` into `into`; answers how many results were among them. */
export function salvage(from: string, into: DatabaseSync): number {
  let results = 0
  try {
    using old = new Connection(from)
    into.exec('BEGIN')
    readRows(old, 'SELECT digest, entries FROM manifests', ([digest, entries]) => {
      const parsed = JSON.parse(String(entries)) as TreeEntry[]
      if (treeDigest(parsed) !== digest) return
      insert(into, 'manifests', [String(digest), String(entries), sizeOf(parsed)])
      insert(into, 'trees', [String(digest), '', '', 0])
    })
    readRows(old, 'SELECT key, record, sum FROM records', ([key, record, sum]) => {
      const result = parseRecord(String(record), Number(sum))
      if (!result || actionDigest(result.action) !== key) return
      const rows = toRows(result)
      insert(into, 'results', rows.result)
      insert(into, 'records', rows.record)
      results++
    })
    for (const [table, columns] of [
      ['stages', 6],
      ['runs', 5],
      ['key_sets', 2],
      ['pins', 2],
    ] as const) {
      readRows(old, `SELECT * FROM ${table}`, (row) => {
        // Typed by the schema both sides share.
        if (row.length === columns) insert(into, table, row as SQLInputValue[])
      })
    }
  } catch {
    // Nothing more can be read: what came before is kept.
  } finally {
    if (into.isTransaction) into.exec('COMMIT')
  }
  return results
}

/** Reads until the first damaged page; a row that does not parse is left out. */
function readRows(db: DatabaseSync, sql: string, take: (row: readonly unknown[]) => void): void {
  try {
    const query = db.prepare(sql)
    query.setReturnArrays(true)
    for (const row of query.iterate()) {
      try {
        // setReturnArrays makes rows arrays, which node's types do not know.
        take(row as unknown as readonly unknown[])
      } catch {
        // This row is damaged; the next may not be.
      }
    }
  } catch {
    // A damaged page ends the table.
  }
}

function insert(db: DatabaseSync, table: string, values: readonly SQLInputValue[]): void {
  db.prepare(`INSERT OR IGNORE INTO ${table} VALUES (${values.map(() => '?').join()})`).run(...values)
}
