// A lock among processes of one machine that the kernel frees when its holder dies: an exclusive transaction on an
// SQLite file of its own.

import { DatabaseSync } from 'node:sqlite'

const WAIT_MS = 600_000

/** Runs `work` while holding the lock; waits for who has it. */
export function withLock<T>(path: string, work: () => T): T {
  const lock = new DatabaseSync(path, { timeout: WAIT_MS })
  try {
    lock.exec('BEGIN EXCLUSIVE')
    return work()
  } finally {
    lock.close()
  }
}
