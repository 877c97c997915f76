// The action cache of the local store: results by action digest. First writer wins while its tree stands.

import type { Digest } from '../../model/digest.ts'
import type { LocalStore, ResultBrief } from '../../model/ports.ts'
import type { ActionResult } from '../../model/result.ts'
import type { Database } from './database.ts'
import { DIGEST_LENGTH, type HotRows } from './hot.ts'
import { parseRecord, sumOf, toRows } from './rows.ts'
import type { Trees } from './trees.ts'

export type Results = Pick<LocalStore, 'lookup' | 'readResult' | 'noteResult' | 'getResult' | 'putResult'>

export interface ResultsOptions {
  readonly db: Database
  readonly hot: HotRows
  readonly trees: Trees
  readonly warn: (message: string) => void
}

export function openResults({ db, hot, trees, warn }: ResultsOptions): Results {
  function lookup(key: Digest): ResultBrief | undefined {
    const row = hot.get(key)
    if (!row) return undefined
    const { text, sum, standing } = row
    if (sumOf(text) !== sum) {
      drop(key)
      return undefined
    }
    // `sum` says that it is what was written, which begins with a digest.
    const tree = text.slice(0, DIGEST_LENGTH) as Digest
    if (!standing || !trees.isIntact(tree, standing)) return undefined
    return { key, tree, outputs: JSON.parse(text.slice(DIGEST_LENGTH)) as ActionResult['outputs'] }
  }

  function readResult(key: Digest): ActionResult | undefined {
    const row = db.get('SELECT record, sum FROM records WHERE key = ?', key)
    if (!row) return undefined
    const result = parseRecord(String(row[0]), Number(row[1]))
    if (!result) drop(key)
    return result
  }

  function drop(key: Digest): void {
    hot.forget(key)
    db.write(() => {
      db.run('DELETE FROM results WHERE key = ?', key)
      db.run('DELETE FROM records WHERE key = ?', key)
    })
    warn(`the stored result of action ${key} was damaged and is dropped`)
  }

  async function putResult(result: ActionResult, { replace }: { readonly replace: boolean }): Promise<void> {
    const rows = toRows(result)
    hot.forget(result.actionDigest)
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
    noteResult(result) {
      db.run('INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?)', ...toRows(result).record)
    },
    getResult: async (key) => (lookup(key) ? readResult(key) : undefined),
    putResult,
  }
}

const STANDING = 'SELECT 1 FROM results r JOIN trees t ON t.digest = r.tree WHERE r.key = ?'
