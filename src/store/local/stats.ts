// The stat cache: digests of source files by path, size, mtime, ctime and inode, so that an unchanged file is not read.

import type { Digest } from '../../model/digest.ts'
import type { FileStat, StatCache } from '../../model/ports.ts'
import type { Database } from './database.ts'

/** A file changed this shortly before it was hashed could change again without a trace: its times move in steps of the
 *  kernel's tick, 10 ms at most on Linux. */
const RACY_MS = 50
/** As above, where times are whole seconds: on such file systems (HFS+, some network mounts) steps may be 2 s. */
const RACY_COARSE_MS = 3000
/** From so many look-ups on, reading the whole table is cheaper than asking for single rows. */
const BULK_FROM = 50

interface Known extends FileStat {
  readonly digest: Digest
}

export interface BufferedStatCache extends StatCache {
  flush(): void
}

export function openStats(db: Database, now: () => number): BufferedStatCache {
  const known = new Map<string, Known | undefined>()
  const fresh = new Map<string, Known>()
  let asked = 0

  function load(path: string): Known | undefined {
    if (asked > BULK_FROM) return undefined
    asked++
    if (asked <= BULK_FROM) {
      const row = db.get('SELECT * FROM sources WHERE path = ?', path)
      const found = row && toKnown(row)
      known.set(path, found)
      return found
    }
    for (const row of db.all('SELECT * FROM sources')) {
      const name = String(row[0])
      if (!known.has(name)) known.set(name, toKnown(row))
    }
    return known.get(path)
  }

  return {
    get(path, stat) {
      const entry = known.has(path) ? known.get(path) : load(path)
      if (!entry) return undefined
      const isSame =
        entry.size === stat.size &&
        entry.mtimeMs === stat.mtimeMs &&
        entry.ctimeMs === stat.ctimeMs &&
        entry.ino === stat.ino
      return isSame ? entry.digest : undefined
    },
    set(path, stat, digest) {
      if (isRacy(stat, now())) return
      const { size, mtimeMs, ctimeMs, ino } = stat
      const entry = { size, mtimeMs, ctimeMs, ino, digest }
      known.set(path, entry)
      fresh.set(path, entry)
    },
    flush() {
      if (fresh.size === 0) return
      db.write(() => {
        for (const [path, entry] of fresh) {
          const { size, mtimeMs, ctimeMs, ino, digest } = entry
          db.run(
            'INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?, ?)',
            path,
            size,
            mtimeMs,
            ctimeMs,
            ino,
            digest,
          )
        }
      })
      fresh.clear()
    },
  }
}

/** True when the file changed so lately that its next change may leave the same times. */
function isRacy(stat: FileStat, nowMs: number): boolean {
  const isCoarse = stat.mtimeMs % 1000 === 0 && stat.ctimeMs % 1000 === 0
  return Math.max(stat.mtimeMs, stat.ctimeMs) > nowMs - (isCoarse ? RACY_COARSE_MS : RACY_MS)
}

function toKnown(row: readonly unknown[]): Known {
  const [, size, mtimeMs, ctimeMs, ino, digest] = row
  // Typed by the schema; a damaged digest cannot match what it is compared with downstream and costs one execution.
  return {
    size: Number(size),
    mtimeMs: Number(mtimeMs),
    ctimeMs: Number(ctimeMs),
    ino: Number(ino),
    digest: digest as Digest,
  }
}
