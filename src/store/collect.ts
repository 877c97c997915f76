// gc of the local store: deletes what no root reaches and nobody has used of late.
// Order: results, then the trees and logs only they named, then what belongs to no result. Each deletion looks again,
// under the index's write lock, whether a run has taken up what is about to go.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Digest } from '../model/digest.ts'
import type { LocalStore } from '../model/ports.ts'
import { type CollectOptions, type CollectReason, cutoff, type Gc } from './local/gc.ts'
import { clearAway, collectFolders, collectLogs, collectStrays, forgetHistory } from './local/remains.ts'
import { findRoots, type Roots } from './local/roots.ts'
import { type LocalParts, partsOf } from './local.ts'
import { type CollectReport, count, toReport } from './tally.ts'

/** Collects; with `dryRun` only says what would go. Safe beside running pilots. */
export async function collect(
  store: LocalStore,
  options: CollectOptions,
): Promise<CollectReport<CollectReason>> {
  const parts = partsOf(store)
  const roots = findRoots(parts.db, { keepRuns: options.keepRuns, pins: options.pins ?? [] })
  const gc: Gc = { parts, options, roots, removed: new Map(), kept: new Map() }
  const doomed = collectResults(gc)
  await collectTrees(gc, doomed)
  await collectStrays(gc)
  collectLogs(gc, doomed)
  await collectFolders(gc, 'old run', parts.layout.runs)
  await collectFolders(gc, 'quarantined', parts.layout.quarantine)
  await collectFolders(gc, 'left to resume from', parts.layout.resume)
  if (!options.dryRun) forgetHistory(gc)
  return toReport(gc.removed, gc.kept)
}

/** Keys of the results that go, or would. */
function collectResults(gc: Gc): ReadonlySet<string> {
  const { parts, roots, options } = gc
  const before = cutoff(gc)
  const doomed = new Set<string>()
  for (const [key, tree, used] of parts.db.all(RESULTS)) {
    if (roots.pinned.has(String(key)) || roots.pinned.has(String(tree)) || roots.recent.has(String(key)))
      continue
    if (used === null || Number(used) < before) doomed.add(String(key))
  }
  if (!options.dryRun) {
    parts.db.write(() => {
      const now = cutoff(gc)
      for (const key of doomed) {
        if (parts.db.run(DROP_RESULT, key, now) === 0) doomed.delete(key)
        else parts.db.run('DELETE FROM records WHERE key = ?', key)
      }
    })
    // Each is the digest of an action.
    for (const key of doomed) parts.hot.forget(key as Digest)
  }
  for (const _ of doomed) count(gc.removed, 'unreachable result', 0)
  return doomed
}

const RESULTS = 'SELECT r.key, r.tree, t.used FROM results r LEFT JOIN trees t ON t.digest = r.tree'
const DROP_RESULT = `DELETE FROM results WHERE key = ? AND NOT EXISTS
  (SELECT 1 FROM trees WHERE digest = results.tree AND used >= ?)`

/** So many trees a transaction: other processes wait for it. */
const BATCH = 256

async function collectTrees(gc: Gc, doomed: ReadonlySet<string>): Promise<void> {
  const { parts, roots, options } = gc
  const before = cutoff(gc)
  const named = namedTrees(parts, doomed)
  const goes: [digest: Digest, bytes: number][] = []
  for (const [digest, used, bytes] of parts.db.all(TREES)) {
    const tree = String(digest)
    const isIdle = !roots.pinned.has(tree) && !named.has(tree) && Number(used) < before
    // Digests are what the column holds.
    if (isIdle) goes.push([tree as Digest, Number(bytes)])
    else count(gc.kept, whyKept(roots, tree, named), Number(bytes))
  }
  for (let at = 0; at < goes.length; at += BATCH) {
    const batch = goes.slice(at, at + BATCH)
    const gone = options.dryRun ? batch : dropTrees(gc, batch)
    for (const [, bytes] of gone) count(gc.removed, 'unreachable tree', bytes)
    if (!options.dryRun)
      clearAway(
        gc,
        gone.map(([digest]) => digest),
      )
    await nextTurn()
  }
}

const TREES =
  'SELECT t.digest, t.used, coalesce(m.bytes, 0) FROM trees t LEFT JOIN manifests m ON m.digest = t.digest'

function whyKept(roots: Roots, tree: string, named: ReadonlyMap<string, string>): CollectReason {
  const key = named.get(tree)
  if (roots.pinned.has(tree) || (key !== undefined && roots.pinned.has(key))) return 'pinned'
  if (key === undefined) return 'in use or in grace'
  return roots.recent.has(key) ? 'recent run' : 'named by a kept result'
}

/** Trees of the results that stay, each with the action of one of them: a rooted one where there is one. */
function namedTrees({ db }: LocalParts, doomed: ReadonlySet<string>): ReadonlyMap<string, string> {
  const named = new Map<string, string>()
  for (const [key, tree] of db.all('SELECT key, tree FROM results')) {
    if (!doomed.has(String(key))) named.set(String(tree), String(key))
  }
  return named
}

function dropTrees(gc: Gc, batch: readonly [Digest, number][]): readonly [Digest, number][] {
  const { db, hot } = gc.parts
  return db.write(() => {
    const before = cutoff(gc)
    const named = namedTrees(gc.parts, new Set())
    return batch.filter(([digest]) => {
      if (
        named.has(digest) ||
        db.run('DELETE FROM trees WHERE digest = ? AND used < ?', digest, before) === 0
      )
        return false
      db.run('DELETE FROM manifests WHERE digest = ?', digest)
      hot.forget(digest)
      return true
    })
  })
}
