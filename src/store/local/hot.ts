// The rows a lookup needs, read one by one for a few lookups and all at once for many: ten thousand single reads cost
// three times one read of ten thousand rows.
// Invariant: what is answered is what the index holds in this turn of the event loop; writes of other processes are
// seen by SQLite's own counter, writes of this one are told to `forget`.

import type { Digest } from '../../model/digest.ts'
import type { Database, Row } from './database.ts'

export interface HotRow {
  /** Digest of the tree, then the outputs as JSON: one text, as `sum` is over both. */
  readonly text: string
  readonly sum: number
  /** Undefined where the tree has no row: dropped, or not written yet. */
  readonly standing: TreeRow | undefined
}

export interface TreeRow {
  /** Of the entries, in order, with `//` between them. */
  readonly paths: string
  /** Fingerprint of the root and the entries. */
  readonly stat: string
  /** ms since the epoch. */
  readonly used: number
}

export interface HotRows {
  get(key: Digest): HotRow | undefined
  /** A row of `results` (by its key) or of `trees` (by its digest) was written. */
  forget(digest: Digest): void
}

/** Hex digits. */
export const DIGEST_LENGTH = 64
/** So many rows are read at once in the time of one single read. */
const ROWS_PER_READ = 4
/** Who asks for fewer is not asking for a whole pipeline. */
const ASK_FROM = 16

export function openHotRows(db: Database): HotRows {
  let loaded: Loaded | undefined
  let singles = 0
  let expected: Expected | undefined
  let isCurrent = false
  const stale = new Set<string>()

  /** Once a turn: the rest of a turn is one moment to other processes. */
  function keepCurrent(): void {
    if (isCurrent) return
    isCurrent = true
    setImmediate(() => {
      isCurrent = false
    })
    if (loaded && loaded.version !== versionOf(db)) {
      loaded = undefined
      singles = 0
    }
  }

  function isWorthLoading(): boolean {
    singles++
    if (singles < ASK_FROM) return false
    expected ??= expectLookups(db)
    return Math.max(singles, expected.lookups) * ROWS_PER_READ > expected.rows
  }

  return {
    get(key) {
      keepCurrent()
      if (!loaded && isWorthLoading()) {
        loaded = load(db)
        stale.clear()
      }
      if (!loaded || stale.has(key)) return readSingle(db, key)
      const row = loaded.results.get(key)
      if (!row) return undefined
      // Typed by the schema; `sum` tells whether they are what was written.
      const [, text, sum] = row as [string, string, number]
      const tree = text.slice(0, DIGEST_LENGTH)
      if (stale.has(tree)) return readSingle(db, key)
      return { text, sum, standing: toTreeRow(loaded.trees.get(tree), 1) }
    },
    forget(digest) {
      if (loaded) stale.add(digest)
    },
  }
}

interface Expected {
  readonly lookups: number
  readonly rows: number
}

/** Who goes through a pipeline looks up as many actions as it has stages. */
function expectLookups(db: Database): Expected {
  const stages = db.get('SELECT count(*) FROM stages')
  // Grows with every replaced row, so it may be too much, which only delays the loading.
  const rows = db.get('SELECT max(rowid) FROM records')
  return { lookups: Number(stages?.[0] ?? 0), rows: Number(rows?.[0] ?? 0) }
}

interface Loaded {
  readonly version: number
  readonly results: ReadonlyMap<unknown, Row>
  readonly trees: ReadonlyMap<unknown, Row>
}

function load(db: Database): Loaded {
  return db.read(() => ({
    version: versionOf(db),
    results: byFirst(db.all('SELECT key, tree || outputs, sum FROM results')),
    trees: byFirst(db.all('SELECT digest, paths, stat, used FROM trees')),
  }))
}

/** Changes with every commit of another connection. */
function versionOf(db: Database): number {
  return Number(db.get('PRAGMA data_version')?.[0])
}

function byFirst(rows: readonly Row[]): ReadonlyMap<unknown, Row> {
  const map = new Map<unknown, Row>()
  for (const row of rows) map.set(row[0], row)
  return map
}

function readSingle(db: Database, key: Digest): HotRow | undefined {
  const row = db.get(SINGLE, key)
  if (!row) return undefined
  const [text, sum, paths] = row as [string, number, string | null]
  return { text, sum, standing: paths === null ? undefined : toTreeRow(row, 2) }
}

const SINGLE = `SELECT r.tree || r.outputs, r.sum, t.paths, t.stat, t.used
  FROM results r LEFT JOIN trees t ON t.digest = r.tree WHERE r.key = ?`

/** The columns paths, stat, used from `at` on. */
export function toTreeRow(row: Row | undefined, at: number): TreeRow | undefined {
  // Typed by the schema: TEXT, TEXT, INTEGER.
  return row && { paths: row[at] as string, stat: row[at + 1] as string, used: row[at + 2] as number }
}
