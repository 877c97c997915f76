// Trees as they lie in an entry: the manifest, and the files under their own names but with plain modes. What a tree is
// made of besides bytes (modes, links, empty folders) is in the manifest, which the digest of the tree proves.

import { mkdtempSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { Digest } from '../../model/digest.ts'
import { PilotError } from '../../model/error.ts'
import { type Tree, type TreeEntry, treeDigest } from '../../model/tree.ts'
import { copyTree } from '../local/copy.ts'
import { errnoOf, removeFolder } from '../local/disk.ts'
import { isPlain } from '../remote/manifest.ts'

/** @param from holds the tree @throws PilotError `tree-changed` */
export async function packTree(tree: Tree, from: string, bundle: string): Promise<void> {
  writeFileSync(`${bundle}/tree.json`, JSON.stringify(tree.entries))
  const damage = await copyTree(tree.entries.flatMap(toPlain), from, `${bundle}/files`)
  if (!damage) return
  throw new PilotError({
    code: 'tree-changed',
    blame: 'environment',
    what: `"${damage.path}" is not what was hashed: expected ${damage.expected}, got ${damage.got}`,
    where: from,
    hint: 'nothing was stored: run again',
  })
}

/** What tar of any user can read, and unpack again. */
function toPlain(entry: TreeEntry): readonly TreeEntry[] {
  if (entry.type === 'link') return []
  return [{ ...entry, mode: entry.type === 'dir' ? 0o755 : 0o644 }]
}

/** Fills the new folder `into`. Undefined, with `into` absent, where the bundle is not this tree. */
export async function unpackTree(digest: Digest, bundle: string, into: string): Promise<Tree | undefined> {
  const entries = readEntries(digest, bundle)
  if (!entries) return undefined
  // Beside `into`, so that it appears whole by one rename.
  const partial = mkdtempSync(`${into}.partial-`)
  try {
    if (await copyTree(entries, `${bundle}/files`, `${partial}/tree`)) return undefined
    renameSync(`${partial}/tree`, into)
    return { digest, entries }
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  } finally {
    removeFolder(partial)
  }
}

function readEntries(digest: Digest, bundle: string): readonly TreeEntry[] | undefined {
  try {
    // Proved by the digest.
    const entries = JSON.parse(readFileSync(`${bundle}/tree.json`, 'utf8')) as TreeEntry[]
    return treeDigest(entries) === digest && isPlain(entries) ? entries : undefined
  } catch {
    return undefined
  }
}

/** A file that the manifest names and the bundle lacks, or has something else for. */
function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP'].includes(errnoOf(error) ?? '')
}
