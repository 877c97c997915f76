// What gc must keep: actions and trees reachable from pins, from the last good runs, and from runs that live.

import type { Digest } from '../../model/digest.ts'
import type { Layout } from '../layout.ts'
import type { Database } from './database.ts'
import { isAlive } from './liveness.ts'
import { USE_GRAIN_MS } from './trees.ts'

export interface Roots {
  /** Pinned: actions or trees. */
  readonly pinned: ReadonlySet<string>
  /** Actions of the kept runs and the last one of each stage. */
  readonly recent: ReadonlySet<string>
  readonly runs: ReadonlySet<string>
}

export interface RootsOptions {
  readonly keepRuns: number
  readonly pins: readonly Digest[]
}

/** Runs newer than the oldest kept one are kept too, though they failed: what they made is what a rerun starts from. */
export function findRoots(db: Database, { keepRuns, pins }: RootsOptions): Roots {
  const pinned = new Set<string>(pins)
  for (const [digest] of db.all('SELECT digest FROM pins')) pinned.add(String(digest))
  const recent = new Set<string>()
  for (const [key] of db.all('SELECT key FROM stages')) recent.add(String(key))
  const runs = new Set<string>()
  let left = keepRuns
  for (const [id, good, keys] of db.all(RUNS)) {
    if (left <= 0) break
    runs.add(String(id))
    if (good === 1) left--
    for (const line of String(keys).split('\n')) {
      if (line !== '') recent.add(line.slice(line.indexOf(' ') + 1))
    }
  }
  return { pinned, recent, runs }
}

const RUNS =
  'SELECT r.id, r.good, k.keys FROM runs r JOIN key_sets k ON k.digest = r.keys ORDER BY r.seq DESC'

export interface Live {
  /** Ids of runs whose process lives. */
  readonly runs: ReadonlySet<string>
  /** What was used before this moment, in ms since the epoch, no live run has in hand. */
  readonly idleSinceMs: number
}

/** To be asked again inside every transaction that deletes: a run registers itself before it looks anything up. */
export function findLive(db: Database, layout: Layout, own: string): Live {
  const runs = new Set<string>()
  let idleSinceMs = Number.POSITIVE_INFINITY
  for (const [id, run, since] of db.all('SELECT id, run, since FROM owners')) {
    if (id === own || !isAlive(layout, String(id))) continue
    runs.add(String(run))
    // A use is written only where the last one is older than the grain.
    idleSinceMs = Math.min(idleSinceMs, Number(since) - USE_GRAIN_MS)
  }
  return { runs, idleSinceMs }
}
