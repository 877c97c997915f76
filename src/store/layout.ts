// Where things are in `artifacts/`: the only place that knows its paths. Holds no file access.
//
//   VERSION            format of what follows
//   index.db           results, manifests of trees, stat fingerprints, claims (SQLite; docs/decisions/0002)
//   trees/<hex>/       immutable, write-protected, mtime of every entry fixed
//   logs/<hex>         text of a log
//   runs/<id>/         what belongs to one run and is not kept by content
//   latest/<stage>     link to ../trees/<hex>
//   tmp/<owner>/       of one process; removed with it, or by the next one that finds it dead
//   locks/<owner>.db   held by the kernel for as long as that process lives
//   quarantine/        what failed verification
//   resume/<key>       what a stage left to go on from when its attempt died
//   machine/           made for this machine from what is kept (environments); never part of a digest

import { join } from 'node:path'
import type { Digest } from '../model/digest.ts'

/** Bumped with every change an older pilot would misread. */
export const LAYOUT_VERSION = 1

export interface Layout {
  readonly root: string
  readonly version: string
  readonly index: string
  readonly trees: string
  readonly logs: string
  readonly runs: string
  readonly latest: string
  readonly tmp: string
  readonly locks: string
  readonly quarantine: string
  readonly resume: string
  readonly machine: string
}

/** Paths of the store whose folder is `root` (absolute). */
export function layoutOf(root: string): Layout {
  return {
    root,
    version: join(root, 'VERSION'),
    index: join(root, 'index.db'),
    trees: join(root, 'trees'),
    logs: join(root, 'logs'),
    runs: join(root, 'runs'),
    latest: join(root, 'latest'),
    tmp: join(root, 'tmp'),
    locks: join(root, 'locks'),
    quarantine: join(root, 'quarantine'),
    resume: join(root, 'resume'),
    machine: join(root, 'machine'),
  }
}

/** Folders that are there in every store. */
export function foldersOf(layout: Layout): readonly string[] {
  const { trees, logs, runs, latest, tmp, locks, quarantine, resume, machine } = layout
  return [trees, logs, runs, latest, tmp, locks, quarantine, resume, machine]
}

// Joined by hand where the no-op path comes through: `join` normalises, which costs more than the call it serves.

export function treePath(layout: Layout, digest: Digest): string {
  return `${layout.trees}/${digest}`
}

export function logPath(layout: Layout, digest: Digest): string {
  return `${layout.logs}/${digest}`
}

export function lockPath(layout: Layout, owner: string): string {
  return `${layout.locks}/${owner}.db`
}

/** Held while a corrupt index is replaced. Not named as an owner's lock: it stays. */
export function repairLockPath(layout: Layout): string {
  return `${layout.locks}/repair`
}

export function tempOf(layout: Layout, owner: string): string {
  return `${layout.tmp}/${owner}`
}

export function latestPath(layout: Layout, stage: string): string {
  return `${layout.latest}/${stage}`
}

/** What the link `latest/<stage>` holds: relative, so that a moved project keeps its links. */
export function latestTarget(digest: Digest): string {
  return `../trees/${digest}`
}
