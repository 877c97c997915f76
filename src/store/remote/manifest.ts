// The manifest of a tree in a remote store: its entries, and in which objects their bytes are.

import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import * as z from 'zod'
import type { Digest } from '../../model/digest.ts'
import { type Tree, type TreeEntry, treeDigest } from '../../model/tree.ts'
import { BLOBS, PACKS } from './keys.ts'
import { contentsOf, type Pack, toPacks } from './placement.ts'

export const MANIFEST_SCHEMA = 'pilot.tree-manifest.v1'

/** A part of a large file: which object holds it, and its size before compression. */
export type PartRef = readonly [blob: Digest, sizeBytes: number]

export interface Manifest {
  readonly tree: Tree
  /** By content, the parts of each large file in order. */
  readonly parts: Readonly<Record<string, readonly PartRef[]>>
  readonly packs: readonly Pack[]
}

const DIGEST = z.string().regex(/^[0-9a-f]{64}$/)
// The entries are proved by the digest of the tree, and need no schema.
const SHAPE = z.strictObject({
  schema: z.literal(MANIFEST_SCHEMA),
  entries: z.array(z.unknown()),
  parts: z.record(DIGEST, z.array(z.tuple([DIGEST, z.int().positive()]))),
})

export function toManifest(tree: Tree, parts: Manifest['parts']): Manifest {
  return { tree, parts, packs: toPacks(contentsOf(tree).small) }
}

export function encodeManifest({ tree, parts }: Manifest): Buffer {
  const text = JSON.stringify({ schema: MANIFEST_SCHEMA, entries: tree.entries, parts })
  return zstdCompressSync(text, { params: { [constants.ZSTD_c_compressionLevel]: 3 } })
}

/** Undefined where the bytes are no manifest of this tree. */
export function decodeManifest(digest: Digest, bytes: Uint8Array): Manifest | undefined {
  try {
    const { entries, parts } = SHAPE.parse(JSON.parse(zstdDecompressSync(bytes).toString('utf8')))
    const tree: Tree = { digest, entries: entries as TreeEntry[] }
    if (treeDigest(tree.entries) !== digest || !isPlain(tree.entries)) return undefined
    const manifest = toManifest(tree, parts as unknown as Manifest['parts'])
    return hasAllParts(manifest) ? manifest : undefined
  } catch {
    return undefined
  }
}

/** Every object that the tree's bytes are in. */
export function objectsOf({ packs, parts }: Manifest): readonly string[] {
  const blobs = new Set(Object.values(parts).flatMap((refs) => refs.map(([blob]) => blob)))
  return [...packs.map(({ id }) => PACKS + id), ...[...blobs].map((blob) => BLOBS + blob)]
}

function hasAllParts({ tree, parts }: Manifest): boolean {
  return contentsOf(tree).large.every(
    ({ digest, sizeBytes }) => parts[digest]?.reduce((sum, [, size]) => sum + size, 0) === sizeBytes,
  )
}

/** A path that leaves the root, or a link that does, is never restored, whoever vouches for it. */
export function isPlain(entries: readonly TreeEntry[]): boolean {
  return entries.every((entry) => {
    const names = entry.path.split('/')
    if (
      entry.path === '' ||
      entry.path.includes('\0') ||
      names.some((n) => n === '' || n === '.' || n === '..')
    )
      return false
    return entry.type !== 'link' || staysInside(names.slice(0, -1), entry.target)
  })
}

function staysInside(folder: readonly string[], target: string): boolean {
  if (target.startsWith('/') || target === '') return false
  let depth = folder.length
  for (const name of target.split('/')) {
    if (name === '..') depth--
    else if (name !== '' && name !== '.') depth++
    if (depth < 0) return false
  }
  return true
}
