// Sealing and checking the entries of a tree on disk. A sealed entry has no write permission and a fixed mtime, so any
// later write shows in its stat, also one within the clock's grain of the sealing: mtime never returns by itself.
// The fingerprint of a tree is size, mtime, ctime and inode of the root and of each entry, in order.

import { chmodSync, lstatSync, lutimesSync, readdirSync, readlinkSync, type Stats, utimesSync } from 'node:fs'
import type { TreeEntry } from '../../model/tree.ts'
import { hashFileSync } from './disk.ts'

/** mtime of every sealed file and folder: 2000-01-01T00:00:00Z. Not 0 or 1 as elsewhere: zip knows no time before 1980. */
const SEALED_MTIME_S = 946_684_800
/** Numbers of a fingerprint for each entry. */
const WIDTH = 4
/** No path in a tree holds two slashes in a row. */
const SEPARATOR = '//'

/** What was found to be wrong with a tree: the first thing only. */
export interface Damage {
  /** Within the tree; `.` is its root. */
  readonly path: string
  readonly expected: string
  readonly got: string
}

export function joinPaths(entries: readonly TreeEntry[]): string {
  return entries.map((entry) => entry.path).join(SEPARATOR)
}

export function newFingerprint(entries: readonly TreeEntry[]): Float64Array {
  return new Float64Array((entries.length + 1) * WIDTH)
}

export function toBytes(stat: Float64Array): Uint8Array {
  return new Uint8Array(stat.buffer, stat.byteOffset, stat.byteLength)
}

function fromBytes(bytes: Uint8Array): Float64Array {
  const aligned = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice()
  return new Float64Array(aligned.buffer, aligned.byteOffset, Math.floor(aligned.byteLength / 8))
}

/** Write-protects every entry below `root` and notes its stat.
 *  @returns the first file whose size is not the manifest's: it was written to after it was hashed. */
export function sealEntries(
  root: string,
  entries: readonly TreeEntry[],
  stat: Float64Array,
): Damage | undefined {
  let at = 0
  for (const entry of entries) {
    at += WIDTH
    const now = sealEntry(`${root}/${entry.path}`, entry)
    note(stat, at, now)
    if (entry.type === 'file' && now.size !== entry.sizeBytes) {
      return { path: entry.path, expected: `${entry.sizeBytes} bytes`, got: `${now.size} bytes` }
    }
  }
  return undefined
}

export function sealRoot(root: string, stat: Float64Array): void {
  chmodSync(root, 0o555)
  utimesSync(root, SEALED_MTIME_S, SEALED_MTIME_S)
  note(stat, 0, lstatSync(root))
}

function sealEntry(path: string, entry: TreeEntry): Stats {
  if (entry.type === 'link') {
    lutimesSync(path, SEALED_MTIME_S, SEALED_MTIME_S)
  } else {
    chmodSync(path, sealedMode(entry))
    utimesSync(path, SEALED_MTIME_S, SEALED_MTIME_S)
  }
  return lstatSync(path)
}

/** Readable to the owner whatever the manifest says: the store must be able to copy and to check it. */
function sealedMode(entry: { readonly type: 'file' | 'dir'; readonly mode: number }): number {
  return (entry.mode | (entry.type === 'dir' ? 0o500 : 0o400)) & 0o555
}

function note(stat: Float64Array, at: number, now: Stats): void {
  stat[at] = now.size
  stat[at + 1] = now.mtimeMs
  stat[at + 2] = now.ctimeMs
  stat[at + 3] = now.ino
}

function isNoted(stat: Float64Array, at: number, now: Stats): boolean {
  return (
    stat[at] === now.size &&
    stat[at + 1] === now.mtimeMs &&
    stat[at + 2] === now.ctimeMs &&
    stat[at + 3] === now.ino
  )
}

const QUIET = { throwIfNoEntry: false } as const

/** True when the stat of the root and of every entry is the noted one. A folder's mtime tells of entries added or
 *  removed, so no folder is listed. */
export function isUntouched(root: string, paths: string, bytes: Uint8Array): boolean {
  const stat = fromBytes(bytes)
  const now = lstatSync(root, QUIET)
  if (!now || !isNoted(stat, 0, now)) return false
  if (paths === '') return stat.length === WIDTH
  let at = 0
  for (const path of paths.split(SEPARATOR)) {
    at += WIDTH
    const entry = lstatSync(`${root}/${path}`, QUIET)
    if (!entry || !isNoted(stat, at, entry)) return false
  }
  return stat.length === at + WIDTH
}

/** Compares a tree with its manifest: entries whose stat is the noted one are trusted, all others are read. What is
 *  sound is sealed again, and `noted` brought up to date.
 *  @returns what is wrong, or undefined for an intact tree. */
export function inspectTree(
  root: string,
  entries: readonly TreeEntry[],
  bytes: Uint8Array,
): { readonly damage: Damage } | { readonly stat: Float64Array } {
  const old = fromBytes(bytes)
  const noted = old.length === (entries.length + 1) * WIDTH ? old.slice() : newFingerprint(entries)
  const children = childrenOf(entries)
  const now = lstatSync(root, QUIET)
  if (!now) return { damage: { path: '.', expected: 'a folder', got: 'nothing' } }
  const damage = now.isDirectory()
    ? strangerIn(root, '', children)
    : { path: '.', expected: 'a folder', got: nameOf(now) }
  if (damage) return { damage }
  let at = 0
  for (const entry of entries) {
    at += WIDTH
    const damage = inspectEntry(root, entry, { noted, at, children })
    if (damage) return { damage }
  }
  sealRoot(root, noted)
  return { stat: noted }
}

type Children = ReadonlyMap<string, ReadonlySet<string>>

function inspectEntry(
  root: string,
  entry: TreeEntry,
  known: { readonly noted: Float64Array; readonly at: number; readonly children: Children },
): Damage | undefined {
  const path = `${root}/${entry.path}`
  const now = lstatSync(path, QUIET)
  if (now && isNoted(known.noted, known.at, now)) return undefined
  const wrong = (expected: string, got: string): Damage => ({ path: entry.path, expected, got })
  if (!now) return wrong(NAMES[entry.type], 'nothing')
  if (nameOf(now) !== NAMES[entry.type]) return wrong(NAMES[entry.type], nameOf(now))
  if (entry.type === 'file') {
    if (now.size !== entry.sizeBytes) return wrong(`${entry.sizeBytes} bytes`, `${now.size} bytes`)
    const digest = hashFileSync(path)
    if (digest !== entry.digest) return wrong(`sha256 ${entry.digest}`, `sha256 ${digest}`)
    const after = lstatSync(path, QUIET)
    if (after?.mtimeMs !== now.mtimeMs || after.ctimeMs !== now.ctimeMs)
      return wrong('a file at rest', 'a file being written')
  } else if (entry.type === 'link') {
    const target = readlinkSync(path)
    if (target !== entry.target) return wrong(`a link to ${entry.target}`, `a link to ${target}`)
  } else {
    const damage = strangerIn(root, entry.path, known.children)
    if (damage) return damage
  }
  note(known.noted, known.at, sealEntry(path, entry))
  return undefined
}

/** An entry of a folder that the manifest does not have. */
function strangerIn(root: string, folder: string, children: Children): Damage | undefined {
  const known = children.get(folder)
  const path = folder === '' ? root : `${root}/${folder}`
  for (const name of readdirSync(path)) {
    if (known?.has(name)) continue
    return {
      path: folder === '' ? name : `${folder}/${name}`,
      expected: 'nothing',
      got: nameOf(lstatSync(`${path}/${name}`)),
    }
  }
  return undefined
}

function childrenOf(entries: readonly TreeEntry[]): Children {
  const children = new Map<string, Set<string>>()
  for (const { path } of entries) {
    const slash = path.lastIndexOf('/')
    const folder = slash < 0 ? '' : path.slice(0, slash)
    const names = children.get(folder)
    if (names) names.add(path.slice(slash + 1))
    else children.set(folder, new Set([path.slice(slash + 1)]))
  }
  return children
}

const NAMES = { file: 'a file', dir: 'a folder', link: 'a link' } as const

function nameOf(stat: Stats): string {
  if (stat.isFile()) return NAMES.file
  if (stat.isDirectory()) return NAMES.dir
  return stat.isSymbolicLink() ? NAMES.link : 'a special file'
}
