// File work the store shares: errors of the machine as PilotError, and folders that are write-protected.

import { createHash, hash } from 'node:crypto'
import { chmodSync, closeSync, lstatSync, openSync, readdirSync, readSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Digest } from '../../model/digest.ts'
import { PilotError } from '../../model/error.ts'

interface Trouble {
  readonly code: string
  readonly what: string
  readonly hint: string
}

const FULL: Trouble = {
  code: 'disk-full',
  what: 'no space is left for the store',
  hint: 'free some space there, or let `pilot gc` do it',
}
const DENIED: Trouble = {
  code: 'store-denied',
  what: 'the store may not be written',
  hint: 'make the folder writable for this user, or keep the store elsewhere',
}
const READ_ONLY: Trouble = {
  code: 'store-read-only',
  what: 'the store lies on a read-only file system',
  hint: 'mount it writable, or keep the store elsewhere',
}
const BUSY: Trouble = {
  code: 'store-busy',
  what: 'another process has held the index of the store for too long',
  hint: 'look for a stopped pilot or a backup tool that has index.db open',
}
const BROKEN: Trouble = {
  code: 'store-io',
  what: 'the disk under the store answers with an error',
  hint: 'look at the free space and the health of the disk, then run again',
}

const BY_ERRNO: Readonly<Record<string, Trouble>> = {
  ENOSPC: FULL,
  EDQUOT: FULL,
  EACCES: DENIED,
  EPERM: DENIED,
  EROFS: READ_ONLY,
  EIO: BROKEN,
}
/** By SQLite's primary result code. */
const BY_SQLITE: Readonly<Record<number, Trouble>> = {
  3: DENIED,
  5: BUSY,
  6: BUSY,
  8: READ_ONLY,
  10: BROKEN,
  13: FULL,
  14: DENIED,
}

/** SQLite's primary result code of an error, or undefined where the error is not SQLite's. */
export function sqliteCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

/** The same error, as a PilotError where the machine is to blame. */
export function toDiskError(error: unknown, path: string): unknown {
  if (error instanceof PilotError) return error
  const errno = (error as NodeJS.ErrnoException | null)?.code
  const trouble = BY_SQLITE[sqliteCode(error) ?? -1] ?? BY_ERRNO[errno ?? '']
  if (!trouble) return error
  const where = (error as NodeJS.ErrnoException).path ?? path
  return new PilotError({ ...trouble, blame: 'environment', where, cause: error })
}

/** Calls `act`; what the disk refuses comes out as a PilotError naming `path`. */
export function onDisk<T>(path: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    throw toDiskError(error, path)
  }
}

export function errnoOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | null)?.code
}

/** Removes a folder, also one whose folders are write-protected. Absent is fine. */
export function removeFolder(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (error) {
    if (errnoOf(error) !== 'EACCES' && errnoOf(error) !== 'EPERM') throw error
    makeWritable(path)
    rmSync(path, { recursive: true, force: true })
  }
}

/** Gives the owner all rights on every folder below `path` (a rename or removal needs them). */
function makeWritable(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat?.isDirectory()) return
  chmodSync(path, 0o700)
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) makeWritable(join(path, entry.name))
  }
}

/** Renames a folder whose own permissions may forbid it: moving a folder writes its `..`. */
export function moveFolder(from: string, to: string): void {
  chmodSync(from, 0o755)
  renameSync(from, to)
}

/** Sum of the sizes of the files at or below `path`, in bytes. */
export function sizeOnDisk(path: string): number {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat?.isDirectory()) return stat?.size ?? 0
  return readdirSync(path).reduce((sum, name) => sum + sizeOnDisk(join(path, name)), 0)
}

const CHUNK = 1 << 20
let buffer: Buffer | undefined

/** sha256 of a file's bytes, read on this thread in pieces. */
export function hashFileSync(path: string): Digest {
  buffer ??= Buffer.allocUnsafeSlow(CHUNK)
  const bytes = buffer
  const file = openSync(path, 'r')
  try {
    let read = readSync(file, bytes, 0, CHUNK, null)
    // The brand is what this function adds to node's string.
    if (read < CHUNK) {
      const more = read === 0 ? 0 : readSync(file, bytes, read, CHUNK - read, null)
      if (more === 0) return hash('sha256', bytes.subarray(0, read), 'hex') as Digest
      read += more
    }
    const sum = createHash('sha256')
    for (; read > 0; read = readSync(file, bytes, 0, CHUNK, null)) sum.update(bytes.subarray(0, read))
    return sum.digest('hex') as Digest
  } finally {
    closeSync(file)
  }
}
