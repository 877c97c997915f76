// The action cache of the local store: results by action digest. First writer wins while its tree stands.

import type { Digest } from '../../model/digest.ts'
import type { LocalStore, ResultBrief } from '../../model/ports.ts'
import type { ActionResult } from '../../model/result.ts'
import type { Database } from './database.ts'
import { parseRecord, sumOf, toRows } from './rows.ts'
import type { Trees } from './trees.ts'

export type Results = Pick<LocalStore, 'lookup' | 'readResult' | 'getResult' | 'putResult'>

export interface ResultsOptions {
  readonly db: Database
  readonly trees: Trees
  readonly warn: (message: string) => void
}

export function openResults({ db, trees, warn }: ResultsOptions): Results {
  function lookup(key: Digest): ResultBrief | undefined {
    const row = db.get(LOOKUP, key)
    if (!row) return undefined
    // Typed by the schema; `sum` says that they are what was written.
    const [tree, outputs, sum, paths, stat, used] = row as [
      Digest,
      string,
      number,
      string,
      Uint8Array,
      number,
    ]
    if (sumOf(key, tree, outputs) !== sum) {
      drop(key)
      return undefined
    }
    // null where the tree has no row: dropped, or not written yet.
    if (stat === null || !trees.isIntact(tree, { paths, stat, used })) return undefined
    return { key, tree, outputs: JSON.parse(outputs) as ActionResult['outputs'] }
  }

  function readResult(key: Digest): ActionResult | undefined {
    const row = db.get('SELECT record, sum FROM records WHERE key = ?', key)
    if (!row) return undefined
    const result = parseRecord(String(row[0]), Number(row[1]))
    if (!result) drop(key)
    return result
  }

  function drop(key: Digest): void {
    db.write(() => {
      db.run('DELETE FROM results WHERE key = ?', key)
      db.run('DELETE FROM records WHERE key = ?', key)
    })
    warn(`the stored result of action ${key} was damaged and is dropped`)
  }

  async function putResult(result: ActionResult, { replace }: { readonly replace: boolean }): Promise<void> {
    const rows = toRows(result)
    db.write(() => {
      // A result whose tree is gone is no result: it gives way, or its action would run for ever.
      const isKept = !replace && db.get(STANDING, result.actionDigest) !== undefined
      if (isKept) return
      db.run('INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)', ...rows.result)
      db.run('INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)', ...rows.record)
    })
  }

  return {
    lookup,
    readResult,
    getResult: async (key) => (lookup(key) ? readResult(key) : undefined),
    putResult,
  }
}

const LOOKUP = `SELECT r.tree, r.outputs, r.sum, t.paths, t.stat, t.used
  FROM results r LEFT JOIN trees t ON t.digest = r.tree WHERE r.key = ?`
const STANDING = 'SELECT 1 FROM results r JOIN trees t ON t.digest = r.tree WHERE r.key = ?'
