// Digests of source files and folders, which people edit: by stat where nothing changed, by content otherwise.
// Unlike outputs, a source folder is taken as git takes it, so that two clones agree: what tools leave behind is not
// part of it, nor are empty folders, and of a mode only "executable" counts.
// Left out by name at every level: .git, node_modules, __pycache__, .venv, artifacts.

import { existsSync, lstatSync, realpathSync, type Stats } from 'node:fs'
import { basename } from 'node:path'
import type { Digest } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import type { StatCache } from '../model/ports.ts'
import type { ContentKind } from '../model/stage.ts'
import { type TreeEntry, toTree } from '../model/tree.ts'
import { INPUT } from './fault.ts'
import { type FileToHash, hashFile } from './hash-file.ts'
import { unwatched } from './tree.ts'
import { walk } from './walk.ts'

export const SOURCE_EXCLUDES: ReadonlySet<string> = new Set([
  '.git',
  'node_modules',
  '__pycache__',
  '.venv',
  'artifacts',
])

/** Sources as hashed, once a run: the memo goes with the stat cache, which is one a run. */
const memos = new WeakMap<StatCache, Map<string, Digest | Promise<Digest>>>()

/** Digest of a source: of a file its content, of a folder its tree; at once where nothing large is to be hashed. Asked
 *  twice with one cache, it answers as the first time, so that a run sees one state of each source; `importSource` finds
 *  out when that state has passed.
 *  @param path absolute
 *  @returns rejects with PilotError `input-missing`, `input-kind`, `input-escapes`, `input-special`, `input-changed` */
export function hashSource(path: string, kind: ContentKind, stats: StatCache): Digest | Promise<Digest> {
  const memo = memos.get(stats) ?? new Map<string, Digest | Promise<Digest>>()
  memos.set(stats, memo)
  const id = kind === 'tree' ? `${path}/` : path
  const known = memo.get(id)
  if (known) return known
  const digest = hashOnce(path, kind, stats)
  memo.set(id, digest)
  return digest
}

function hashOnce(path: string, kind: ContentKind, stats: StatCache): Digest | Promise<Digest> {
  try {
    if (kind !== 'tree') return hashSourceFile(path, stats)
    const entries = sourceEntries(path, stats)
    if (entries.some((entry) => entry instanceof Promise)) {
      return Promise.all(entries).then((all) => toTree(all).digest)
    }
    // None of them is a promise.
    return toTree(entries as readonly TreeEntry[]).digest
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Entries of a source folder, as git would keep it; a promise for each large file. */
function sourceEntries(path: string, stats: StatCache): readonly (TreeEntry | Promise<TreeEntry>)[] {
  const { real } = findSource(path, 'tree')
  const entries: (TreeEntry | Promise<TreeEntry>)[] = []
  const folders = new Set<string>()
  walk(real, { subject: INPUT, exclude: SOURCE_EXCLUDES }, ({ path: name, stat, target }) => {
    if (stat.isDirectory()) return
    addFolders(folders, name)
    if (target !== undefined) {
      entries.push({ type: 'link', path: name, target })
      return
    }
    const toEntry = (digest: Digest): TreeEntry => ({
      type: 'file',
      path: name,
      mode: sourceMode(stat.mode),
      digest,
      sizeBytes: stat.size,
    })
    const digest = cachedDigest({ path: `${real}/${name}`, name, stat, subject: INPUT }, stats)
    if (typeof digest === 'string') entries.push(toEntry(digest))
    else entries.push(unwatched(digest.then(toEntry)))
  })
  const dirs = [...folders].map((folder): TreeEntry => ({ type: 'dir', path: folder, mode: 0o755 }))
  return [...dirs, ...entries]
}

/** Of a source file's mode only this is kept: umask and file system decide the rest. */
export function sourceMode(mode: number): number {
  return (mode & 0o100) !== 0 ? 0o755 : 0o644
}

function hashSourceFile(path: string, stats: StatCache): Digest | Promise<Digest> {
  const { real, stat } = findSource(path, 'file')
  return cachedDigest({ path: real, name: basename(path), stat, subject: INPUT }, stats)
}

/** At once where the stat is known or the file is small. */
function cachedDigest(file: FileToHash, stats: StatCache): Digest | Promise<Digest> {
  const known = stats.get(file.path, file.stat)
  if (known) return known
  const startedMs = Date.now()
  const digest = hashFile(file)
  if (typeof digest !== 'string') return digest.then((value) => keepSettled(value, startedMs))
  stats.set(file.path, file.stat, digest)
  return digest

  /** The cache judges a file's age when it is told; a large file may have been young when its hashing began. */
  function keepSettled(value: Digest, beganMs: number): Digest {
    if (beganMs - file.stat.ctimeMs > SETTLED_MS) stats.set(file.path, file.stat, value)
    return value
  }
}

const SETTLED_MS = 3000

function addFolders(folders: Set<string>, path: string): void {
  for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
    const folder = path.slice(0, slash)
    if (folders.has(folder)) return
    folders.add(folder)
  }
}

/** Where a source really is, and its stat. A link is followed here, at the top, where the user has put it. */
export function findSource(path: string, expected: 'file' | 'tree'): { real: string; stat: Stats } {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink() && existsSync(path)) return findSource(realpathSync(path), expected)
  if (stat && (expected === 'tree' ? stat.isDirectory() : stat.isFile())) return { real: path, stat }
  const what = expected === 'tree' ? 'folder' : 'file'
  throw new PilotError({
    code: stat ? 'input-kind' : 'input-missing',
    blame: 'user',
    what: stat ? `the input "${path}" is not a ${what}` : `the input ${what} "${path}" does not exist`,
    hint: stat ? 'declare it as what it is, or change its path' : 'make it, or correct its path in the stage',
  })
}
