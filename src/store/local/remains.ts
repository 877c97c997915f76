// The part of gc that goes through folders: trees nobody knows, logs, old runs, quarantine, and rows of history.

import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { count } from '../tally.ts'
import { moveFolder, removeFolder, sizeOnDisk } from './disk.ts'
import { type CollectReason, cutoff, type Gc } from './gc.ts'
import { findLive } from './roots.ts'

/** Removes folders of trees that have no row; one that has got a row meanwhile stays. */
export function clearAway({ parts: { db, layout, temps } }: Gc, names: readonly string[]): void {
  const moved = db.write(() =>
    names.flatMap((name) => {
      if (db.get('SELECT 1 FROM trees WHERE digest = ?', name)) return []
      if (!lstatSync(`${layout.trees}/${name}`, { throwIfNoEntry: false })) return []
      const to = temps.path('gc')
      moveFolder(`${layout.trees}/${name}`, to)
      return [to]
    }),
  )
  for (const path of moved) removeFolder(path)
}

/** Folders in trees/ without a row: of a process that died between the two, or of an index that was lost. */
export async function collectStrays(gc: Gc): Promise<void> {
  const { db, layout } = gc.parts
  const known = new Set(db.all('SELECT digest FROM trees').map(([digest]) => String(digest)))
  const before = cutoff(gc)
  for (const name of readdirSync(layout.trees)) {
    if (known.has(name)) continue
    const stat = lstatSync(`${layout.trees}/${name}`, { throwIfNoEntry: false })
    if (!stat || stat.ctimeMs >= before) continue
    count(gc.removed, 'tree without a row', sizeOnDisk(`${layout.trees}/${name}`))
    if (!gc.options.dryRun) clearAway(gc, [name])
    await nextTurn()
  }
}

export function collectLogs(gc: Gc, doomed: ReadonlySet<string>): void {
  const { db, layout } = gc.parts
  const named = new Set<string>()
  for (const [key, log] of db.all('SELECT key, log FROM records WHERE log IS NOT NULL')) {
    if (!doomed.has(String(key))) named.add(String(log))
  }
  const before = cutoff(gc)
  for (const name of readdirSync(layout.logs)) {
    const path = `${layout.logs}/${name}`
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (!stat || named.has(name) || stat.ctimeMs >= before) continue
    count(gc.removed, 'unreachable log', stat.size)
    if (!gc.options.dryRun) dropLog(gc, name, path)
  }
}

function dropLog({ parts: { db } }: Gc, name: string, path: string): void {
  db.write(() => {
    if (!db.get('SELECT 1 FROM records WHERE log = ?', name)) rmSync(path, { force: true })
  })
}

/** Folders that belong to runs, or to nobody any more. */
export async function collectFolders(gc: Gc, reason: CollectReason, folder: string): Promise<void> {
  const { parts, roots, options } = gc
  const live = findLive(parts.db, parts.layout, parts.owner).runs
  const before = cutoff(gc)
  for (const name of readdirSync(folder)) {
    if (roots.runs.has(name) || live.has(name)) continue
    const path = `${folder}/${name}`
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (!stat || stat.ctimeMs >= before) continue
    count(gc.removed, reason, sizeOnDisk(path))
    if (!options.dryRun) removeFolder(path)
    await nextTurn()
  }
}

/** Rows of runs that are no roots, and stat fingerprints of sources that are gone. */
export function forgetHistory({ parts: { db }, roots }: Gc): void {
  const gone = db
    .all('SELECT path FROM sources')
    .map(([path]) => String(path))
    .filter((path) => !lstatSync(path, { throwIfNoEntry: false }))
  db.write(() => {
    for (const [id] of db.all('SELECT id FROM runs WHERE id NOT IN (SELECT run FROM owners)')) {
      if (!roots.runs.has(String(id))) db.run('DELETE FROM runs WHERE id = ?', String(id))
    }
    db.run('DELETE FROM key_sets WHERE digest NOT IN (SELECT keys FROM runs)')
    for (const path of gone) db.run('DELETE FROM sources WHERE path = ?', path)
  })
}
