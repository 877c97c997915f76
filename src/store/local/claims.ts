// One action runs once on this machine: a claim is a row naming its owner, and is worth what the owner's lock is.

import type { Digest } from '../../model/digest.ts'
import type { Layout } from '../layout.ts'
import type { Database } from './database.ts'
import { isAlive } from './liveness.ts'

export type Claim = { readonly type: 'claimed' } | { readonly type: 'held'; readonly holder: string }

export interface Claims {
  claim(key: Digest, stage?: string): Claim
  release(key: Digest): void
  isStageRunning(stage: string): boolean
}

export interface ClaimsOptions {
  readonly layout: Layout
  readonly db: Database
  /** Of this process. */
  readonly owner: string
  /** What others are told: `run 7f3a on host-b`. */
  readonly label: string
  readonly now: () => number
}

export function openClaims({ layout, db, owner, label, now }: ClaimsOptions): Claims {
  function claim(key: Digest, stage?: string): Claim {
    const holder = `${label}, since ${new Date(now()).toISOString().slice(11, 19)} UTC`
    for (;;) {
      if (db.run(INSERT, key, owner, holder, stage ?? null) === 1) return { type: 'claimed' }
      const row = db.get('SELECT owner, holder FROM claims WHERE key = ?', key)
      // Released between the two statements: try again.
      if (!row) continue
      const other = String(row[0])
      if (other === owner) return { type: 'claimed' }
      if (isAlive(layout, other)) return { type: 'held', holder: String(row[1]) }
      // Of two that find the holder dead, one deletes its row and inserts; the other finds the new row.
      db.run('DELETE FROM claims WHERE key = ? AND owner = ?', key, other)
    }
  }
  return {
    claim,
    release(key) {
      db.run('DELETE FROM claims WHERE key = ? AND owner = ?', key, owner)
    },
    isStageRunning: (stage) =>
      db
        .all('SELECT DISTINCT owner FROM claims WHERE stage = ?', stage)
        .some(([other]) => other === owner || isAlive(layout, String(other))),
  }
}

const INSERT = 'INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)'
