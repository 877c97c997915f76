// Who is alive: each process that has the store open holds an exclusive lock on a file of its own. The kernel drops
// it with the process, also at kill -9, and it is right across PID namespaces: no pid is ever guessed at.
// The lock is taken through SQLite because node has no lock call; the files stay empty.

import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { type Layout, lockPath } from '../layout.ts'
import { sqliteCode } from './disk.ts'

export interface Owner extends Disposable {
  /** Never used twice: an owner once dead stays dead. */
  readonly id: string
}

const SQLITE_BUSY = 5
const SQLITE_CANTOPEN = 14
/** Rounds before giving up on taking a lock of our own; each round has a new name. */
const ROUNDS = 100

/** Takes the lock of this process. */
export function becomeOwner(layout: Layout, runId: string): Owner {
  const label = runId.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 40)
  for (let round = 0; ; round++) {
    const id = `${label}.${randomBytes(6).toString('hex')}`
    const path = lockPath(layout, id)
    const taken = tryLock(path, new DatabaseSync(path, { timeout: 0 }))
    const lock = typeof taken === 'string' ? undefined : taken
    // One that sweeps may have found the file before it was locked and removed it: such a lock holds nothing.
    if (lock && existsSync(path)) return { id, [Symbol.dispose]: () => letGo(path, lock) }
    lock?.close()
    if (round === ROUNDS) throw new Error(`could not take a lock in ${layout.locks}`)
  }
}

/** True while the process that became this owner lives. The file of a dead one is removed. */
export function isAlive(layout: Layout, owner: string): boolean {
  const path = lockPath(layout, owner)
  const file = openExisting(path)
  if (!file) return false
  const lock = tryLock(path, file)
  if (lock === 'held') return true
  if (lock !== 'gone') letGo(path, lock)
  return false
}

/** Never makes the file: a probe that did would hide from the owner that its file is gone. */
function openExisting(path: string): DatabaseSync | undefined {
  if (!existsSync(path)) return undefined
  const url = pathToFileURL(path)
  url.searchParams.set('mode', 'rw')
  try {
    return new DatabaseSync(url, { timeout: 0 })
  } catch (error) {
    if (sqliteCode(error) === SQLITE_CANTOPEN && !existsSync(path)) return undefined
    throw error
  }
}

/** The file, locked; or, closed, why not: another process holds it, or removed it since it was opened, which SQLite
 *  calls an I/O error. */
function tryLock(path: string, lock: DatabaseSync): DatabaseSync | 'held' | 'gone' {
  try {
    lock.exec('BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    if (sqliteCode(error) === SQLITE_BUSY) return 'held'
    if (!existsSync(path)) return 'gone'
    throw error
  }
}

/** Removed while still locked, so that nobody takes the lock of a file about to go. */
function letGo(path: string, lock: DatabaseSync): void {
  rmSync(path, { force: true })
  lock.close()
}
