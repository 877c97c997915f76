// The trees of the local store: taking them in, checking them, setting damaged ones aside.
// Write order: the folder stands at its place, sealed, before its row; a row is dropped before its folder moves.

import { lstatSync } from 'node:fs'
import type { Digest } from '../../model/digest.ts'
import { PilotError } from '../../model/error.ts'
import { sizeOf, type Tree, type TreeEntry, treeDigest } from '../../model/tree.ts'
import { type Layout, treePath } from '../layout.ts'
import { type Database, freePath } from './database.ts'
import { errnoOf, moveFolder, onDisk, removeFolder } from './disk.ts'
import { type HotRows, type TreeRow, toTreeRow } from './hot.ts'
import {
  type Damage,
  formatFingerprint,
  type Intact,
  inspectTree,
  isUntouched,
  joinPaths,
  sealEntries,
  sealRoot,
} from './seal.ts'

export type OnDamage = (digest: Digest, found: Damage) => void

export interface Trees {
  adopt(tree: Tree, dir: string): string
  /** Path of an intact tree; damaged ones are set aside on the way. */
  open(digest: Digest): string | undefined
  /** As `open`, for a row already read. */
  isIntact(digest: Digest, row: TreeRow): boolean
  isUntouched(digest: Digest): boolean
  /** Reads every byte of a tree. Damage is returned and the tree set aside. */
  verify(digest: Digest): Damage | undefined
  read(digest: Digest): Tree | undefined
  /** Moves a tree to quarantine/, unless another process has done so. */
  quarantine(digest: Digest, damage: Damage): void
}

/** A tree's last use is written at most this often; gc reckons with it. */
export const USE_GRAIN_MS = 3_600_000

export interface TreesOptions {
  readonly layout: Layout
  readonly db: Database
  readonly hot: HotRows
  readonly now: () => number
  readonly onDamage: OnDamage
}

export function openTrees({ layout, db, hot, now, onDamage }: TreesOptions): Trees {
  let isRefreshed = false

  function rowOf(digest: Digest): TreeRow | undefined {
    return toTreeRow(db.get('SELECT paths, stat, used FROM trees WHERE digest = ?', digest), 0)
  }

  function entriesOf(digest: Digest): readonly TreeEntry[] | undefined {
    const row = db.get('SELECT entries FROM manifests WHERE digest = ?', digest)
    return row && parseEntries(digest, String(row[0]))
  }

  /** Says in the index that a tree is in use, so that gc leaves it; false where gc has just dropped it. The trees of the
   *  last run are marked together. */
  function markUsed(digest: Digest, row: TreeRow): boolean {
    if (row.used >= now() - USE_GRAIN_MS) return true
    hot.forget(digest)
    const time = Math.floor(now())
    if (!isRefreshed) db.run(MARK_LAST_RUN, time)
    isRefreshed = true
    return db.run('UPDATE trees SET used = ? WHERE digest = ?', time, digest) > 0
  }

  function isIntact(digest: Digest, row: TreeRow): boolean {
    if (!markUsed(digest, row)) return false
    if (isUntouched(treePath(layout, digest), row.paths, row.stat)) return true
    return inspect(digest, row.stat) === undefined
  }

  /** Reads what the fingerprint does not vouch for; what is wrong is set aside. */
  function inspect(digest: Digest, fingerprint: string): Damage | undefined {
    const path = treePath(layout, digest)
    const entries = entriesOf(digest)
    const found = entries
      ? onDisk(path, () => inspectTree(path, entries, fingerprint))
      : { damage: NO_MANIFEST }
    if ('marks' in found && entries) {
      hot.forget(digest)
      const stat = formatFingerprint(found.marks)
      db.run('UPDATE trees SET paths = ?, stat = ? WHERE digest = ?', joinPaths(entries), stat, digest)
      return undefined
    }
    const damage = 'damage' in found ? found.damage : NO_MANIFEST
    quarantine(digest, damage)
    return damage
  }

  function quarantine(digest: Digest, damage: Damage): void {
    hot.forget(digest)
    const isOurs = db.write(() => {
      if (db.run('DELETE FROM trees WHERE digest = ?', digest) === 0) return false
      db.run('DELETE FROM manifests WHERE digest = ?', digest)
      moveAside(digest)
      return true
    })
    if (isOurs) onDamage(digest, damage)
  }

  function moveAside(digest: Digest): void {
    const path = treePath(layout, digest)
    onDisk(path, () => {
      if (!lstatSync(path, { throwIfNoEntry: false })) return
      moveFolder(path, freePath(layout.quarantine, digest))
    })
  }

  /** Puts `dir` at the tree's place, unless an intact copy stands there: then tells of that. */
  function place(tree: Tree, dir: string, path: string): Intact | undefined {
    for (;;) {
      try {
        moveFolder(dir, path)
        return undefined
      } catch (error) {
        if (errnoOf(error) !== 'ENOTEMPTY' && errnoOf(error) !== 'EEXIST' && errnoOf(error) !== 'ENOTDIR')
          throw error
      }
      // Left by a process that died before its row, or another adopter's, who is about to write the row.
      const found = inspectTree(path, tree.entries, '')
      if ('marks' in found) return found
      moveAside(tree.digest)
    }
  }

  /** Writes the row of a tree that stands at its place. False where gc took the folder away meanwhile. */
  function record(tree: Tree, path: string, { ino, marks }: Intact): boolean {
    const entries = JSON.stringify(tree.entries)
    hot.forget(tree.digest)
    return db.write(() => {
      const standing = lstatSync(path, { throwIfNoEntry: false })
      if (standing?.ino !== ino) return false
      db.run(
        'INSERT OR REPLACE INTO trees VALUES (?, ?, ?, ?)',
        tree.digest,
        joinPaths(tree.entries),
        formatFingerprint(marks),
        Math.floor(now()),
      )
      db.run('INSERT OR REPLACE INTO manifests VALUES (?, ?, ?)', tree.digest, entries, sizeOf(tree.entries))
      return true
    })
  }

  function open(digest: Digest): string | undefined {
    const row = rowOf(digest)
    return row && isIntact(digest, row) ? treePath(layout, digest) : undefined
  }

  function adopt(tree: Tree, dir: string): string {
    const standing = open(tree.digest)
    if (standing !== undefined) {
      removeFolder(dir)
      return standing
    }
    const path = treePath(layout, tree.digest)
    const marks = sealEntries(dir, tree.entries)
    if (!Array.isArray(marks)) throw changedAfterHashing(dir, marks)
    const standingAlready = place(tree, dir, path)
    if (!standingAlready) {
      if (!record(tree, path, { ino: sealRoot(path, marks), marks })) throw takenAway(path)
      return path
    }
    // Taken away by gc before its row was written: `dir` is still there to take its place.
    if (!record(tree, path, standingAlready)) return adopt(tree, dir)
    removeFolder(dir)
    return path
  }

  return {
    adopt: (tree, dir) => onDisk(dir, () => adopt(tree, dir)),
    open,
    isIntact,
    isUntouched(digest) {
      const row = rowOf(digest)
      return row !== undefined && isUntouched(treePath(layout, digest), row.paths, row.stat)
    },
    verify: (digest) => inspect(digest, ''),
    read(digest) {
      const entries = entriesOf(digest)
      return entries && { digest, entries }
    },
    quarantine,
  }
}

/** The entries, where they are those of the digest: the index may be damaged as anything else. */
function parseEntries(digest: Digest, text: string): readonly TreeEntry[] | undefined {
  try {
    // Proved by the digest in the next line.
    const entries = JSON.parse(text) as TreeEntry[]
    return treeDigest(entries) === digest ? entries : undefined
  } catch {
    return undefined
  }
}

const NO_MANIFEST: Damage = { path: '.', expected: 'a manifest', got: 'none in the index' }

const MARK_LAST_RUN = `UPDATE trees SET used = ? WHERE digest IN
  (SELECT tree FROM results WHERE key IN (SELECT key FROM stages))`

function changedAfterHashing(dir: string, written: Damage): PilotError {
  return new PilotError({
    code: 'output-changed',
    blame: 'stage',
    what: `"${written.path}" was written to after it was hashed: ${written.expected} became ${written.got}`,
    where: dir,
    hint: 'end every process of the stage before the stage itself ends',
  })
}

function takenAway(path: string): PilotError {
  return new PilotError({
    code: 'store-tampered',
    blame: 'environment',
    what: 'a tree was taken away while it was being stored',
    where: path,
    hint: 'remove nothing by hand while pilot runs: `pilot gc` does it safely',
  })
}
