// Trees: what a folder holds, entry by entry, and the digest of it. Pure; walking a disk is capture's work.
// Row of the digest: `<kind> <mode, octal> <digest | link target as JSON | ->  <path as JSON>\n`, sorted by path bytes.

import { type Digest, digestOf } from './digest.ts'

export const TREE_SCHEMA = 'pilot.tree.v1'

export type TreeEntry =
  | {
      readonly type: 'file'
      readonly path: string
      /** Permission bits, 0o777 at most. */
      readonly mode: number
      readonly digest: Digest
      readonly sizeBytes: number
    }
  | { readonly type: 'dir'; readonly path: string; readonly mode: number }
  | { readonly type: 'link'; readonly path: string; readonly target: string }

export interface Tree {
  readonly digest: Digest
  /** Every entry below the root (files, links, folders also when empty), sorted by the bytes of its path. */
  readonly entries: readonly TreeEntry[]
}

/** Digest of a tree's entries, in any order. */
export function treeDigest(entries: readonly TreeEntry[]): Digest {
  return digestOf(`${TREE_SCHEMA}\n${sortEntries(entries).map(toRow).join('')}`)
}

export function toTree(entries: readonly TreeEntry[]): Tree {
  return { digest: treeDigest(entries), entries: sortEntries(entries) }
}

/** What `tree` holds at `path`: a file's own content digest, or the digest of the sub-tree. */
export function contentAt(
  tree: Tree,
  path: string,
):
  | {
      readonly kind: 'file' | 'tree'
      readonly digest: Digest
      readonly sizeBytes: number
      readonly files: number
    }
  | undefined {
  const prefix = `${path}/`
  const below: TreeEntry[] = []
  let isFolder = false
  for (const entry of tree.entries) {
    if (entry.path === path) {
      if (entry.type === 'file')
        return { kind: 'file', digest: entry.digest, sizeBytes: entry.sizeBytes, files: 1 }
      isFolder = entry.type === 'dir'
    } else if (entry.path.startsWith(prefix)) {
      below.push({ ...entry, path: entry.path.slice(prefix.length) })
    }
  }
  if (!isFolder) return undefined
  return { kind: 'tree', digest: treeDigest(below), sizeBytes: sizeOf(below), files: countFiles(below) }
}

/** Sum of the sizes of the files, in bytes. */
export function sizeOf(entries: readonly TreeEntry[]): number {
  return entries.reduce((sum, entry) => sum + (entry.type === 'file' ? entry.sizeBytes : 0), 0)
}

export function countFiles(entries: readonly TreeEntry[]): number {
  return entries.reduce((sum, entry) => sum + (entry.type === 'file' ? 1 : 0), 0)
}

function sortEntries(entries: readonly TreeEntry[]): readonly TreeEntry[] {
  return [...entries].sort((a, b) => comparePaths(a.path, b.path))
}

/** Order of UTF-8 bytes. For strings without surrogates, UTF-16 order is the same and much cheaper. */
function comparePaths(a: string, b: string): number {
  if (HAS_SURROGATE.test(a) || HAS_SURROGATE.test(b)) return Buffer.compare(Buffer.from(a), Buffer.from(b))
  return a < b ? -1 : a > b ? 1 : 0
}

const HAS_SURROGATE = /[\ud800-\udfff]/

function toRow(entry: TreeEntry): string {
  const path = JSON.stringify(entry.path)
  switch (entry.type) {
    case 'file':
      return `file ${entry.mode.toString(8)} ${entry.digest} ${path}\n`
    case 'dir':
      return `dir ${entry.mode.toString(8)} - ${path}\n`
    case 'link':
      return `link - ${JSON.stringify(entry.target)} ${path}\n`
  }
}
