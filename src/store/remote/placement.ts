// Where the bytes of a tree go: small files into packs, large ones cut into parts. Pure.
// Packs are cut where the digests of their members say so, and named by them: a tree that changes in one file shares
// all packs but one with what was there before, and which ones is known without reading a byte.

import { type Digest, digestOf } from '../../model/digest.ts'
import type { Tree, TreeEntry } from '../../model/tree.ts'

/** Files from this size on are stored by themselves, in parts. */
export const LARGE_BYTES = 4 << 20
/** A pack is cut from this size on, where the next digest says so ... */
const PACK_MIN_BYTES = 16 << 20
/** ... which one file in so many does ... */
const CUT_ONE_IN = 64
/** ... and here at the latest. */
const PACK_MAX_BYTES = 32 << 20

export type FileEntry = Extract<TreeEntry, { type: 'file' }>

export interface Pack {
  readonly id: Digest
  /** Distinct contents, in the order they stand in the pack. */
  readonly members: readonly FileEntry[]
  readonly sizeBytes: number
}

/** The contents of a tree, each once. */
export function contentsOf({ entries }: Tree): {
  readonly small: readonly FileEntry[]
  readonly large: readonly FileEntry[]
} {
  const seen = new Set<Digest>()
  const small: FileEntry[] = []
  const large: FileEntry[] = []
  for (const entry of entries) {
    if (entry.type !== 'file' || entry.sizeBytes === 0 || seen.has(entry.digest)) continue
    seen.add(entry.digest)
    ;(entry.sizeBytes < LARGE_BYTES ? small : large).push(entry)
  }
  return { small, large }
}

/** @param files in the order of their paths: what belongs together stays together */
export function toPacks(files: readonly FileEntry[]): readonly Pack[] {
  const packs: Pack[] = []
  let members: FileEntry[] = []
  let sizeBytes = 0
  const close = (): void => {
    if (members.length > 0) packs.push({ id: packId(members), members, sizeBytes })
    members = []
    sizeBytes = 0
  }
  for (const file of files) {
    if (sizeBytes + file.sizeBytes > PACK_MAX_BYTES) close()
    members.push(file)
    sizeBytes += file.sizeBytes
    if (sizeBytes >= PACK_MIN_BYTES && Number.parseInt(file.digest.slice(0, 4), 16) % CUT_ONE_IN === 0)
      close()
  }
  close()
  return packs
}

function packId(members: readonly FileEntry[]): Digest {
  return digestOf(
    `pilot.pack.v1\n${members.map(({ digest, sizeBytes }) => `${digest} ${sizeBytes}\n`).join('')}`,
  )
}

export interface Part {
  readonly offset: number
  readonly sizeBytes: number
}

/** Size of a part where nothing says otherwise. */
export const PART_BYTES = 16 << 20
/** Tensors below it share a part with their neighbours: a request costs as much as so many bytes. */
const TENSOR_MIN_BYTES = 1 << 20

/** A large file in parts. @param boundaries offsets at which content begins that may recur elsewhere (tensors), ascending */
export function toParts(sizeBytes: number, boundaries: readonly number[] = []): readonly Part[] {
  const parts: Part[] = []
  let start = 0
  const cutTo = (end: number): void => {
    for (; start < end; start = Math.min(start + PART_BYTES, end)) {
      parts.push({ offset: start, sizeBytes: Math.min(PART_BYTES, end - start) })
    }
  }
  for (const at of boundaries) {
    if (at - start >= TENSOR_MIN_BYTES && at < sizeBytes) cutTo(at)
  }
  cutTo(sizeBytes)
  return parts
}

/** Offsets at which the tensors of a safetensors file begin; empty where the header is none.
 *  @param head the first bytes of the file: 8 of length, then the JSON header. https://github.com/huggingface/safetensors */
export function tensorBoundaries(head: Uint8Array, sizeBytes: number): readonly number[] {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength)
  if (bytes.length < 8) return []
  const length = Number(bytes.readBigUInt64LE(0))
  if (length > bytes.length - 8) return []
  try {
    const header: unknown = JSON.parse(bytes.toString('utf8', 8, 8 + length))
    if (typeof header !== 'object' || header === null) return []
    const starts = [0]
    for (const tensor of Object.values(header)) {
      const offset: unknown = tensor?.data_offsets?.[0]
      if (typeof offset === 'number' && Number.isSafeInteger(offset) && offset > 0) starts.push(offset)
    }
    return [...new Set(starts)]
      .map((start) => 8 + length + start)
      .filter((at) => at < sizeBytes)
      .sort((a, b) => a - b)
  } catch {
    return []
  }
}
