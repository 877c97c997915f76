// Copies of trees, every byte checked on its way. The copy has the real modes, not the store's write-protection.

import { hash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  mkdirSync,
  openSync,
  readFileSync,
  symlinkSync,
  writeSync,
} from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { TreeEntry } from '../../model/tree.ts'
import { hashFileSync } from './disk.ts'
import type { Damage } from './seal.ts'

/** Below it a file is read, hashed and written in one go; above it is cloned where the file system can. */
const SMALL_BYTES = 1 << 20
/** Longest stretch of work before other tasks get a turn. */
const TURN_MS = 30

/** Fills the new folder `to` with the entries that stand in `from`.
 *  @returns the first entry of `from` that is not as the manifest says; then `to` is incomplete. */
export async function copyTree(
  entries: readonly TreeEntry[],
  from: string,
  to: string,
): Promise<Damage | undefined> {
  mkdirSync(to, { mode: 0o755 })
  let turn = performance.now()
  for (const entry of entries) {
    const damage = copyEntry(entry, `${from}/${entry.path}`, `${to}/${entry.path}`)
    if (damage) return damage
    if (performance.now() - turn < TURN_MS) continue
    await nextTurn()
    turn = performance.now()
  }
  // Children before their folder: one without write permission takes no more of them.
  for (const entry of entries.toReversed()) {
    if (entry.type === 'dir') chmodSync(`${to}/${entry.path}`, entry.mode)
  }
  return undefined
}

function copyEntry(entry: TreeEntry, from: string, to: string): Damage | undefined {
  if (entry.type === 'dir') {
    mkdirSync(to, { mode: 0o700 })
    return undefined
  }
  if (entry.type === 'link') {
    symlinkSync(entry.target, to)
    return undefined
  }
  const digest =
    entry.sizeBytes <= SMALL_BYTES ? copySmall(from, to, entry.mode) : copyLarge(from, to, entry.mode)
  if (digest === entry.digest) return undefined
  return { path: entry.path, expected: `sha256 ${entry.digest}`, got: `sha256 ${digest}` }
}

function copySmall(from: string, to: string, mode: number): string {
  const bytes = readFileSync(from)
  const file = openSync(to, 'wx', 0o600)
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done)
    fchmodSync(file, mode)
  } finally {
    closeSync(file)
  }
  return hash('sha256', bytes, 'hex')
}

/** Hashes the copy, not its source: what was written is what is vouched for. */
function copyLarge(from: string, to: string, mode: number): string {
  copyFileSync(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL)
  const digest = hashFileSync(to)
  chmodSync(to, mode)
  return digest
}
