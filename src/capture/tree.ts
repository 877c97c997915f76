// Hashing a folder: its files, folders also when empty, links and modes become a tree. Nothing in it is changed.

import type { Stats } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Digest } from '../model/digest.ts'
import { type Tree, type TreeEntry, toTree } from '../model/tree.ts'
import { OUTPUT, type Subject } from './fault.ts'
import { hashLargeFile, hashSmallFile, LARGE_BYTES } from './hash-file.ts'
import { type Found, walk } from './walk.ts'

export interface HashTreeOptions {
  readonly signal?: AbortSignal | undefined
  /** Names left out at every level; none by default: an output is kept whole. */
  readonly exclude?: ReadonlySet<string>
}

/** Longest stretch of hashing before other tasks get a turn. */
const TURN_MS = 30
const NONE: ReadonlySet<string> = new Set()

/** The tree of an output folder. Files up to 4 MiB are hashed on this thread, larger ones in parallel.
 *  @param root absolute path
 *  @throws PilotError `output-escapes`, `output-special`, `output-name`, `output-unreadable`, `output-changed`;
 *  the signal's reason once it is aborted. */
export async function hashTree(root: string, options: HashTreeOptions = {}): Promise<Tree> {
  return toTree(await hashEntries(root, { exclude: NONE, ...options, subject: OUTPUT }))
}

interface HashEntriesOptions {
  readonly subject: Subject
  readonly exclude: ReadonlySet<string>
  readonly signal?: AbortSignal | undefined
}

async function hashEntries(root: string, options: HashEntriesOptions): Promise<TreeEntry[]> {
  const { subject, signal } = options
  const entries: TreeEntry[] = []
  const small: Found[] = []
  const large: Promise<TreeEntry>[] = []
  walk(root, options, (found) => {
    if (!found.stat.isFile()) entries.push(toEntry(found))
    else if (found.stat.size <= LARGE_BYTES) small.push(found)
    else large.push(unwatched(hashLarge(root, found, options)))
  })
  signal?.throwIfAborted()
  let turn = performance.now()
  for (const { path, stat } of small) {
    entries.push(toFile(path, stat, hashSmallFile({ path: `${root}/${path}`, name: path, stat, subject })))
    if (performance.now() - turn < TURN_MS) continue
    await nextTurn()
    signal?.throwIfAborted()
    turn = performance.now()
  }
  return entries.concat(await Promise.all(large))
}

/** A failure must not count as unhandled before it is awaited. */
export function unwatched<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {})
  return work
}

async function hashLarge(
  root: string,
  { path, stat }: Found,
  { subject, signal }: HashEntriesOptions,
): Promise<TreeEntry> {
  const file = { path: `${root}/${path}`, name: path, stat, subject }
  return toFile(path, stat, await hashLargeFile(file, signal))
}

function toEntry({ path, stat, target }: Found): TreeEntry {
  if (target !== undefined) return { type: 'link', path, target }
  return { type: 'dir', path, mode: stat.mode & 0o777 }
}

function toFile(path: string, stat: Stats, digest: Digest): TreeEntry {
  return { type: 'file', path, mode: stat.mode & 0o777, digest, sizeBytes: stat.size }
}
