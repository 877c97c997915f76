// sha256 of one file that must stand still while it is hashed. Small files on this thread, large ones on the pool.

import { hash } from 'node:crypto'
import { closeSync, constants, lstatSync, openSync, readSync, type Stats } from 'node:fs'
import type { Digest } from '../model/digest.ts'
import { isChanging, isUnreadable, type Subject } from './fault.ts'
import { hashOnPool } from './hash-pool.ts'

/** Above it a thread's start and messages are cheap beside the hashing. */
export const LARGE_BYTES = 4 << 20

let buffer: Buffer | undefined

/** What is to be hashed: where it is, how it is called in messages, and its stat from before. */
export interface FileToHash {
  readonly path: string
  readonly name: string
  readonly stat: Stats
  readonly subject: Subject
}

/** Digest of a file of at most LARGE_BYTES.
 *  @throws PilotError `…-changed` when its stat is another one afterwards, `…-unreadable` */
export function hashSmallFile(file: FileToHash): Digest {
  // One byte more than allowed: a file that grew is seen to have grown.
  buffer ??= Buffer.allocUnsafeSlow(LARGE_BYTES + 1)
  const length = readWhole(file, buffer)
  if (length !== file.stat.size) throw isChanging(file.subject, file.name)
  // The brand is what this function adds to node's string.
  const digest = hash('sha256', buffer.subarray(0, length), 'hex') as Digest
  refuseChanged(file)
  return digest
}

/** As `hashSmallFile`, for a file of any size, on the pool. */
export async function hashLargeFile(file: FileToHash, signal?: AbortSignal): Promise<Digest> {
  const hashed = await hashOnPool(file.path, signal).catch((error: unknown) => {
    signal?.throwIfAborted()
    throw isUnreadable(file.subject, file.name, error)
  })
  if (hashed.sizeBytes !== file.stat.size) throw isChanging(file.subject, file.name)
  refuseChanged(file)
  return hashed.digest as Digest
}

/** Digest of a file by the way that suits its size. */
export function hashFile(file: FileToHash): Digest | Promise<Digest> {
  return file.stat.size > LARGE_BYTES ? hashLargeFile(file) : hashSmallFile(file)
}

function readWhole(file: FileToHash, into: Buffer): number {
  let handle: number
  try {
    handle = openSync(file.path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    throw isUnreadable(file.subject, file.name, error)
  }
  try {
    let length = 0
    for (;;) {
      const read = readSync(handle, into, length, into.length - length, null)
      length += read
      // A read that fills less than was asked for has reached the end of a regular file; a second one would cost as
      // much as the first, so only files that fill the buffer are asked again.
      if (read === 0 || length >= file.stat.size) return length
    }
  } finally {
    closeSync(handle)
  }
}

function refuseChanged(file: FileToHash): void {
  const { stat } = file
  const now = lstatSync(file.path, { throwIfNoEntry: false })
  const isSame =
    now !== undefined &&
    now.size === stat.size &&
    now.mtimeMs === stat.mtimeMs &&
    now.ctimeMs === stat.ctimeMs &&
    now.ino === stat.ino
  if (!isSame) throw isChanging(file.subject, file.name)
}
