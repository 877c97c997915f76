// index.db: opening, schema, transactions, and what happens when it is corrupt. Holds no knowledge of what rows mean.
// Invariant: everything in it can be checked against a digest or made again by running stages, so a lost index costs
// time and never truth.

import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { type Layout, repairLockPath } from '../layout.ts'
import { sqliteCode, toDiskError } from './disk.ts'
import { salvage } from './salvage.ts'

export type Row = readonly unknown[]

/** How long a statement waits for another process's transaction; those take milliseconds. */
const BUSY_TIMEOUT_MS = 10_000
/** Of index.db alone. One of another version is set aside and what is sound in it carried over. */
const SCHEMA_VERSION = 2
const SQLITE_BUSY = 5
const CORRUPT = new Set([11, 26])

const SCHEMA = `
CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, tree TEXT NOT NULL, outputs TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, record TEXT NOT NULL, sum INTEGER NOT NULL, log TEXT);
CREATE TABLE IF NOT EXISTS trees (digest TEXT PRIMARY KEY, paths TEXT NOT NULL, stat TEXT NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS manifests (digest TEXT PRIMARY KEY, entries TEXT NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS sources (path TEXT PRIMARY KEY, size REAL, mtime REAL, ctime REAL, ino REAL, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS owners (id TEXT PRIMARY KEY, run TEXT NOT NULL, since INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, holder TEXT NOT NULL, stage TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS stages (stage TEXT PRIMARY KEY, run TEXT NOT NULL, key TEXT NOT NULL, outcome TEXT NOT NULL, wall REAL NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, at TEXT NOT NULL, seq INTEGER NOT NULL, good INTEGER NOT NULL, keys TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS key_sets (digest TEXT PRIMARY KEY, keys TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS pins (name TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (name, digest)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
`

export interface Database extends Disposable {
  /** First row, its columns in order. */
  get(sql: string, ...values: SQLInputValue[]): Row | undefined
  all(sql: string, ...values: SQLInputValue[]): readonly Row[]
  /** Number of rows changed. */
  run(sql: string, ...values: SQLInputValue[]): number
  /** Calls `act` holding the index's write lock; nothing of it is kept when it throws. Not nested. */
  write<T>(act: () => T): T
  /** Calls `act` on one state of the index. Not nested. */
  read<T>(act: () => T): T
}

/** Opens the index, making it where there is none. A corrupt one is set aside into quarantine/ and what is sound in it
 *  carried over; `warn` is told. */
export function openDatabase(layout: Layout, warn: (message: string) => void): Database {
  let db = connect(layout, warn)
  let statements = new Map<string, StatementSync>()

  function close(): void {
    statements = new Map()
    db.close()
  }
  function prepare(sql: string): StatementSync {
    let statement = statements.get(sql)
    if (!statement) {
      statement = db.prepare(sql)
      statement.setReturnArrays(true)
      statements.set(sql, statement)
    }
    return statement
  }
  function attempt<T>(act: () => T): T {
    try {
      return act()
    } catch (error) {
      if (!isCorrupt(error) || db.isTransaction) throw toDiskError(error, layout.index)
      close()
      setAside(layout, warn)
      db = connect(layout, warn)
      return act()
    }
  }
  function transact<T>(begin: string, act: () => T): T {
    prepare(begin).run()
    try {
      const answer = act()
      prepare('COMMIT').run()
      return answer
    } catch (error) {
      // SQLite ends the transaction itself on some errors (disk full).
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
  }
  return {
    // setReturnArrays makes rows arrays, which node's types do not know.
    get: (sql, ...values) => attempt(() => prepare(sql).get(...values) as unknown as Row | undefined),
    all: (sql, ...values) => attempt(() => prepare(sql).all(...values) as unknown as readonly Row[]),
    run: (sql, ...values) => attempt(() => Number(prepare(sql).run(...values).changes)),
    write: (act) => attempt(() => transact('BEGIN IMMEDIATE', act)),
    read: (act) => attempt(() => transact('BEGIN', act)),
    [Symbol.dispose]: close,
  }
}

class OtherSchema extends Error {}

function isCorrupt(error: unknown): boolean {
  return error instanceof OtherSchema || CORRUPT.has(sqliteCode(error) ?? -1)
}

function connect(layout: Layout, warn: (message: string) => void): DatabaseSync {
  try {
    return openSound(layout.index)
  } catch (error) {
    if (!isCorrupt(error)) throw toDiskError(error, layout.index)
    setAside(layout, warn)
    return openSound(layout.index)
  }
}

function openSound(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
  try {
    const version = Number(db.prepare('PRAGMA user_version').get()?.['user_version'])
    if (version === 0) createSchema(db)
    else if (version !== SCHEMA_VERSION) throw new OtherSchema(`schema ${version}, not ${SCHEMA_VERSION}`)
    // In WAL mode NORMAL syncs at checkpoints only, which keeps the index sound over a power cut; a result lost by
    // one is made again, and a tree whose bytes did not reach the disk differs in its stat and is found.
    db.exec('PRAGMA synchronous=NORMAL; PRAGMA cache_size=-16000')
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function createSchema(db: DatabaseSync): void {
  // The switch to WAL answers "busy" at once, without waiting, while another process makes the same switch.
  retryBusy(() => db.exec('PRAGMA journal_mode=WAL'))
  db.exec('BEGIN IMMEDIATE')
  db.exec(SCHEMA)
  db.exec(`PRAGMA user_version=${SCHEMA_VERSION}`)
  db.exec('COMMIT')
}

function retryBusy(act: () => void): void {
  const until = performance.now() + BUSY_TIMEOUT_MS
  for (;;) {
    try {
      act()
      return
    } catch (error) {
      if (sqliteCode(error) !== SQLITE_BUSY || performance.now() > until) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
    }
  }
}

/** Moves a corrupt index into quarantine/ and starts a new one with what is sound of it. One process does it;
 *  the others wait and find a sound index. */
function setAside(layout: Layout, warn: (message: string) => void): void {
  const gate = new DatabaseSync(repairLockPath(layout), { timeout: BUSY_TIMEOUT_MS })
  try {
    retryBusy(() => gate.exec('BEGIN EXCLUSIVE'))
    if (isSound(layout.index)) return
    const aside = freePath(layout.quarantine, 'index')
    for (const suffix of ['-wal', '-shm', '']) {
      if (existsSync(layout.index + suffix)) renameSync(layout.index + suffix, aside + suffix)
    }
    const db = openSound(layout.index)
    const kept = salvage(aside, db)
    db.close()
    warn(`the index of the store could not be read: moved to ${aside}, ${kept} results carried over`)
  } finally {
    gate.close()
  }
}

function isSound(path: string): boolean {
  try {
    using db = openSound(path)
    return db.prepare('PRAGMA quick_check(1)').get()?.['quick_check'] === 'ok'
  } catch (error) {
    if (isCorrupt(error)) return false
    throw error
  }
}

/** A path in `folder` not yet taken: `<name>-1`, `<name>-2`, … */
export function freePath(folder: string, name: string): string {
  for (let n = 1; ; n++) {
    const path = join(folder, `${name}-${n}`)
    if (!existsSync(path)) return path
  }
}
