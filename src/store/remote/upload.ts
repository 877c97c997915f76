// A tree on its way out: packs and parts that are not there yet, then the manifest that names them.

import { hash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { type Digest, digestOf } from '../../model/digest.ts'
import { PilotError } from '../../model/error.ts'
import type { Tree } from '../../model/tree.ts'
import { type Budget, inParallel } from './budget.ts'
import { encode } from './codec.ts'
import { BLOBS, PACKS, TREES } from './keys.ts'
import { encodeManifest, type PartRef, toManifest } from './manifest.ts'
import type { ObjectStore } from './objects.ts'
import {
  contentsOf,
  type FileEntry,
  type Pack,
  type Part,
  tensorBoundaries,
  toPacks,
  toParts,
} from './placement.ts'

export interface UploadOptions {
  readonly objects: ObjectStore
  readonly budget: Budget
  /** An object older than this is written anew, so that gc does not take it while its tree is being sent. */
  readonly refreshMs: number
  readonly now: () => number
  readonly onBytes: (bytes: number) => void
}

/** Transfers at the same time. */
const PARALLEL = 6
/** Longest header of a safetensors file that is looked into. */
const HEAD_BYTES = 8 << 20

/** @param from folder that holds the tree @throws PilotError `tree-changed`: what is read is not what was hashed */
export async function uploadTree(options: UploadOptions, tree: Tree, from: string): Promise<void> {
  const { small, large } = contentsOf(tree)
  const parts: Record<string, readonly PartRef[]> = {}
  try {
    await inParallel(toPacks(small), PARALLEL, (pack) => uploadPack(options, pack, from))
    for (const file of large) parts[file.digest] = await uploadLarge(options, file, `${from}/${file.path}`)
  } catch (error) {
    throw error instanceof RangeError ? changed(from, error.message) : error
  }
  await options.objects.put(TREES + tree.digest, encodeManifest(toManifest(tree, parts)))
}

async function uploadPack(options: UploadOptions, pack: Pack, from: string): Promise<void> {
  const key = PACKS + pack.id
  const state = await stateOf(options, key)
  if (state === 'fresh') {
    options.onBytes(pack.sizeBytes)
    return
  }
  using _ = await options.budget.take(2 * pack.sizeBytes)
  const bytes = Buffer.allocUnsafe(1 + pack.sizeBytes)
  let at = 1
  for (const { path, digest, sizeBytes } of pack.members) {
    const member = bytes.subarray(at, at + sizeBytes)
    readAt(`${from}/${path}`, 0, member)
    if (digestOf(member) !== digest) throw changed(from, path)
    at += sizeBytes
  }
  await put(options, key, bytes, state)
  options.onBytes(pack.sizeBytes)
}

/** The file's parts, all of them stored. Who fetches them holds the whole against its digest. */
export async function uploadLarge(
  options: UploadOptions,
  { sizeBytes, path }: FileEntry,
  from: string,
): Promise<readonly PartRef[]> {
  const file = openSync(from, 'r')
  try {
    const parts = toParts(sizeBytes, boundariesOf(path, file, sizeBytes))
    const refs: PartRef[] = new Array(parts.length)
    await inParallel([...parts.entries()], PARALLEL, async ([index, part]) => {
      refs[index] = [await uploadPart(options, file, part), part.sizeBytes]
    })
    return refs
  } finally {
    closeSync(file)
  }
}

function boundariesOf(path: string, file: number, sizeBytes: number): readonly number[] {
  if (!path.endsWith('.safetensors')) return []
  const head = Buffer.allocUnsafe(Math.min(HEAD_BYTES, sizeBytes))
  readFully(file, head, 0)
  return tensorBoundaries(head, sizeBytes)
}

async function uploadPart(
  options: UploadOptions,
  file: number,
  { offset, sizeBytes }: Part,
): Promise<Digest> {
  using _ = await options.budget.take(2 * sizeBytes)
  const bytes = Buffer.allocUnsafe(1 + sizeBytes)
  readFully(file, bytes.subarray(1), offset)
  const blob = hash('sha256', bytes.subarray(1), 'hex') as Digest
  const key = BLOBS + blob
  const state = await stateOf(options, key)
  if (state !== 'fresh') await put(options, key, bytes, state)
  options.onBytes(sizeBytes)
  return blob
}

type State = 'absent' | 'fresh' | 'old'

/** An old object is about to be taken by gc for rubbish: written again, it is young. */
async function stateOf({ objects, refreshMs, now }: UploadOptions, key: string): Promise<State> {
  const facts = await objects.head(key)
  if (!facts) return 'absent'
  return now() - facts.modifiedMs < refreshMs ? 'fresh' : 'old'
}

async function put({ objects }: UploadOptions, key: string, bytes: Buffer, state: State): Promise<void> {
  await objects.put(key, await encode(bytes), state === 'absent' ? { type: 'absent' } : undefined)
}

function readAt(path: string, offset: number, into: Buffer): void {
  const file = openSync(path, 'r')
  try {
    readFully(file, into, offset)
  } finally {
    closeSync(file)
  }
}

/** @throws RangeError where the file is shorter than it was when it was hashed */
function readFully(file: number, into: Buffer, offset: number): void {
  for (let done = 0; done < into.length; ) {
    const got = readSync(file, into, done, into.length - done, offset + done)
    if (got === 0) throw new RangeError('a file of it')
    done += got
  }
}

function changed(from: string, path: string): PilotError {
  return new PilotError({
    code: 'tree-changed',
    blame: 'environment',
    what: `"${path}" is not what was hashed`,
    where: from,
    hint: 'nothing was stored: run again',
  })
}
