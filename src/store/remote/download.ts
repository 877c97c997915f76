// A tree on its way in: every byte held against the digests of the manifest before the folder gets its name.

import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  fchmodSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeSync,
} from 'node:fs'
import { type Digest, digestOf } from '../../model/digest.ts'
import type { TreeEntry } from '../../model/tree.ts'
import { type Budget, inParallel } from './budget.ts'
import { decode } from './codec.ts'
import { BLOBS, PACKS } from './keys.ts'
import { type Manifest, objectsOf, type PartRef } from './manifest.ts'
import type { ObjectStore } from './objects.ts'
import type { FileEntry, Pack } from './placement.ts'

export interface DownloadOptions {
  readonly objects: ObjectStore
  readonly budget: Budget
  readonly onBytes: (bytes: number) => void
}

/** An object that is gone, or does not hold what its name says. */
export class DamagedObject extends Error {
  readonly key: string
  readonly isGone: boolean

  constructor(key: string, found: string) {
    super(`${key} ${found}`)
    this.name = 'DamagedObject'
    this.key = key
    this.isGone = found === GONE
  }
}

const GONE = 'is gone'

/** Transfers at the same time. */
const PARALLEL = 6
/** What came damaged is fetched so often: on the way is not at rest. */
const TRIES = 2

/** Fills the new folder `into`. @throws DamagedObject; then `into` is absent */
export async function downloadTree(
  options: DownloadOptions,
  manifest: Manifest,
  into: string,
): Promise<void> {
  // Beside `into`, so that it appears whole by one rename.
  const partial = mkdtempSync(`${into}.partial-`)
  try {
    const root = `${partial}/tree`
    const files = prepare(manifest.tree.entries, root)
    const work = [
      ...manifest.packs.map((pack) => () => fetchPack(options, pack, files, root)),
      ...Object.entries(manifest.parts).map(
        ([digest, parts]) =>
          () =>
            fetchLarge(options, digest as Digest, parts, files, root),
      ),
    ]
    await inParallel(work, PARALLEL, (act) => act())
    for (const entry of manifest.tree.entries.toReversed()) {
      if (entry.type === 'dir') chmodSync(`${root}/${entry.path}`, entry.mode)
    }
    renameSync(root, into)
  } finally {
    rmSync(partial, { recursive: true, force: true })
  }
}

/** The objects of a tree that are not there, or do not hold what they should: every one is read. */
export async function inspectObjects(
  options: DownloadOptions,
  manifest: Manifest,
): Promise<readonly DamagedObject[]> {
  const damaged: DamagedObject[] = []
  const looked = async (act: () => Promise<unknown>): Promise<void> => {
    try {
      await act()
    } catch (error) {
      if (!(error instanceof DamagedObject)) throw error
      damaged.push(error)
    }
  }
  const sizes = new Map(Object.values(manifest.parts).flat())
  const work = [
    ...manifest.packs.map((pack) => () => looked(async () => readPack(options, pack))),
    ...[...sizes].map((part) => () => looked(async () => readPart(options, part))),
  ]
  await inParallel(work, PARALLEL, (act) => act())
  return damaged
}

/** The objects of a tree that are not there, by asking for their heads only. */
export async function missingObjects(objects: ObjectStore, manifest: Manifest): Promise<readonly string[]> {
  const missing: string[] = []
  await inParallel(objectsOf(manifest), 4 * PARALLEL, async (key) => {
    if (!(await objects.head(key))) missing.push(key)
  })
  return missing
}

/** Makes folders, links and empty files. @returns the paths of each content */
function prepare(entries: readonly TreeEntry[], root: string): ReadonlyMap<Digest, readonly FileEntry[]> {
  const files = new Map<Digest, FileEntry[]>()
  mkdirSync(root)
  for (const entry of entries) {
    const path = `${root}/${entry.path}`
    if (entry.type === 'dir') mkdirSync(path, { mode: 0o700 })
    else if (entry.type === 'link') symlinkSync(entry.target, path)
    else if (entry.sizeBytes === 0) writeFile(path, entry, Buffer.alloc(0))
    else files.set(entry.digest, [...(files.get(entry.digest) ?? []), entry])
  }
  return files
}

async function fetchPack(
  options: DownloadOptions,
  pack: Pack,
  files: ReadonlyMap<Digest, readonly FileEntry[]>,
  root: string,
): Promise<void> {
  using _ = await options.budget.take(2 * pack.sizeBytes)
  const content = await readPack(options, pack)
  let at = 0
  for (const { digest, sizeBytes } of pack.members) {
    const bytes = content.subarray(at, at + sizeBytes)
    for (const file of files.get(digest) ?? []) writeFile(`${root}/${file.path}`, file, bytes)
    at += sizeBytes
  }
  options.onBytes(pack.sizeBytes)
}

/** A large file is written at once to all its places, part by part, and hashed as a whole on the way. */
async function fetchLarge(
  options: DownloadOptions,
  digest: Digest,
  parts: readonly PartRef[],
  files: ReadonlyMap<Digest, readonly FileEntry[]>,
  root: string,
): Promise<void> {
  const places = files.get(digest) ?? []
  const open = places.map(({ path }) => openSync(`${root}/${path}`, 'wx', 0o600))
  try {
    const sum = createHash('sha256')
    // Parts come side by side and are taken in their order.
    let next = 0
    let offset = 0
    const held = new Map<number, { readonly bytes: Buffer; readonly room: Disposable }>()
    const drain = (): void => {
      for (let part = held.get(next); part; part = held.get(next)) {
        sum.update(part.bytes)
        for (const file of open) writeAt(file, part.bytes, offset)
        offset += part.bytes.length
        options.onBytes(part.bytes.length)
        held.delete(next)
        part.room[Symbol.dispose]()
        next++
      }
    }
    await inParallel([...parts.entries()], PARALLEL, async ([index, part]) => {
      // Room is given in order, so the part that all others wait for never waits itself.
      const room = await options.budget.take(2 * part[1])
      try {
        held.set(index, { bytes: await fetchPart(options, part), room })
      } catch (error) {
        room[Symbol.dispose]()
        throw error
      }
      drain()
    }).finally(() => {
      for (const { room } of held.values()) room[Symbol.dispose]()
    })
    if (sum.digest('hex') !== digest) await blame(options, parts, digest)
    for (const [index, file] of open.entries()) {
      fchmodSync(file, places[index]?.mode ?? 0o644)
    }
  } finally {
    for (const file of open) closeSync(file)
  }
}

/** The bytes of a part, of the right size; their content is vouched for by the whole. */
async function fetchPart(options: DownloadOptions, [blob, sizeBytes]: PartRef): Promise<Buffer> {
  return fetchDecoded(options, BLOBS + blob, sizeBytes, () => true)
}

/** The whole is wrong: by which part? */
async function blame(options: DownloadOptions, parts: readonly PartRef[], digest: Digest): Promise<never> {
  for (const part of parts) await readPart(options, part)
  throw new DamagedObject(`the manifest of file ${digest}`, 'names parts that are not those of the file')
}

function readPart(options: DownloadOptions, [blob, sizeBytes]: PartRef): Promise<Buffer> {
  return fetchDecoded(options, BLOBS + blob, sizeBytes, (bytes) => digestOf(bytes) === blob)
}

function readPack(options: DownloadOptions, { id, members, sizeBytes }: Pack): Promise<Buffer> {
  return fetchDecoded(options, PACKS + id, sizeBytes, (content) => {
    let at = 0
    return members.every(({ digest, sizeBytes: size }) => {
      const bytes = content.subarray(at, at + size)
      at += size
      return digestOf(bytes) === digest
    })
  })
}

async function fetchDecoded(
  { objects }: DownloadOptions,
  key: string,
  sizeBytes: number,
  isRight: (bytes: Buffer) => boolean,
): Promise<Buffer> {
  for (let attempt = 1; ; attempt++) {
    const object = await objects.get(key)
    if (!object) throw new DamagedObject(key, GONE)
    const content = await decode(object.bytes, sizeBytes)
    if (content && isRight(content)) return content
    if (attempt >= TRIES) throw new DamagedObject(key, 'does not hold what its name says')
  }
}

function writeFile(path: string, { mode }: FileEntry, bytes: Buffer): void {
  const file = openSync(path, 'wx', 0o600)
  try {
    writeAt(file, bytes, 0)
    fchmodSync(file, mode)
  } finally {
    closeSync(file)
  }
}

function writeAt(file: number, bytes: Buffer, offset: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(file, bytes, done, bytes.length - done, offset + done)
}
