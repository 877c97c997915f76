// Sealing and checking the entries of a tree on disk. A sealed entry has no write permission and a fixed mtime, so any
// later write shows in its stat, also one within the clock's grain of the sealing: mtime never returns by itself.
// The fingerprint of a tree is one mark for the root and one for each entry, in order: size, mtime, ctime and inode
// mixed into a number, which costs a lookup a third of what four numbers do.

import { chmodSync, lstatSync, lutimesSync, readdirSync, readlinkSync, type Stats, utimesSync } from 'node:fs'
import type { TreeEntry } from '../../model/tree.ts'
import { hashFileSync } from './disk.ts'

/** mtime of every sealed file and folder: 2000-01-01T00:00:00Z. Not 0 or 1 as elsewhere: zip knows no time before 1980. */
const SEALED_MTIME_S = 946_684_800
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

/** Marks of the root and of each entry. */
export type Fingerprint = number[]

export function formatFingerprint(marks: Fingerprint): string {
  return marks.join(' ')
}

const FIELDS = new Float64Array(4)
const WORDS = new Uint32Array(FIELDS.buffer)

/** 53 bits of the four fields. Not for use against malice, which could set the clock back as well. */
function markOf(stat: Stats): number {
  FIELDS[0] = stat.size
  FIELDS[1] = stat.mtimeMs
  FIELDS[2] = stat.ctimeMs
  FIELDS[3] = stat.ino
  let low = 0x811c9dc5
  let high = 0x9747b28c
  for (let i = 0; i < 8; i++) {
    // Within the eight words of the four fields.
    const word = WORDS[i] as number
    low = Math.imul(low ^ word, 0x9e3779b1)
    high = Math.imul(high ^ (word + low), 0x85ebca6b)
    low ^= low >>> 15
    high ^= high >>> 13
  }
  return (low >>> 0) * 0x200000 + (high >>> 11)
}

/** Write-protects every entry below `root` and marks its stat; the first mark is left for the root.
 *  @returns the marks; or the first file whose size is not the manifest's: it was written to after it was hashed. */
export function sealEntries(root: string, entries: readonly TreeEntry[]): Fingerprint | Damage {
  const marks = [0]
  for (const entry of entries) {
    const now = sealEntry(`${root}/${entry.path}`, entry)
    marks.push(markOf(now))
    if (entry.type === 'file' && now.size !== entry.sizeBytes) {
      return { path: entry.path, expected: `${entry.sizeBytes} bytes`, got: `${now.size} bytes` }
    }
  }
  return marks
}

/** Write-protects the root itself. Returns its inode. */
export function sealRoot(root: string, marks: Fingerprint): number {
  chmodSync(root, 0o555)
  utimesSync(root, SEALED_MTIME_S, SEALED_MTIME_S)
  const now = lstatSync(root)
  marks[0] = markOf(now)
  return now.ino
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

const QUIET = { throwIfNoEntry: false } as const

/** True when the stat of the root and of every entry is the noted one. A folder's mtime tells of entries added or
 *  removed, so no folder is listed. */
export function isUntouched(root: string, paths: string, fingerprint: string): boolean {
  const now = lstatSync(root, QUIET)
  if (!now) return false
  const marks = fingerprint.split(' ')
  if (markOf(now) !== Number(marks[0])) return false
  if (paths === '') return marks.length === 1
  let at = 0
  for (const path of paths.split(SEPARATOR)) {
    const entry = lstatSync(`${root}/${path}`, QUIET)
    if (!entry || markOf(entry) !== Number(marks[++at])) return false
  }
  return marks.length === at + 1
}

export interface Intact {
  readonly marks: Fingerprint
  /** Inode of the root. */
  readonly ino: number
}

/** Compares a tree with its manifest: entries whose stat is the marked one are trusted, all others are read. What is
 *  sound is sealed again.
 *  @param fingerprint as noted; empty where nothing was, and everything is read */
export function inspectTree(
  root: string,
  entries: readonly TreeEntry[],
  fingerprint: string,
): { readonly damage: Damage } | Intact {
  const noted = fingerprint.split(' ').map(Number)
  const isNoted = noted.length === entries.length + 1
  const marks = [0]
  const children = childrenOf(entries)
  const now = lstatSync(root, QUIET)
  if (!now?.isDirectory()) return { damage: { path: '.', expected: NAMES.dir, got: nameOf(now) } }
  const damage = strangerIn(root, '', children)
  if (damage) return { damage }
  for (const [i, entry] of entries.entries()) {
    const found = inspectEntry(root, entry, { mark: isNoted ? noted[i + 1] : undefined, children })
    if (typeof found !== 'number') return { damage: found }
    marks.push(found)
  }
  return { ino: sealRoot(root, marks), marks }
}

type Children = ReadonlyMap<string, ReadonlySet<string>>

/** The entry's mark, or what is wrong with it. */
function inspectEntry(
  root: string,
  entry: TreeEntry,
  known: { readonly mark: number | undefined; readonly children: Children },
): number | Damage {
  const path = `${root}/${entry.path}`
  const now = lstatSync(path, QUIET)
  if (now && markOf(now) === known.mark) return known.mark
  const wrong = (expected: string, got: string): Damage => ({ path: entry.path, expected, got })
  if (!now || nameOf(now) !== NAMES[entry.type]) return wrong(NAMES[entry.type], nameOf(now))
  if (entry.type === 'file') {
    if (now.size !== entry.sizeBytes) return wrong(`${entry.sizeBytes} bytes`, `${now.size} bytes`)
    const digest = hashFileSync(path)
    if (digest !== entry.digest) return wrong(`sha256 ${entry.digest}`, `sha256 ${digest}`)
    const after = lstatSync(path, QUIET)
    if (!after || markOf(after) !== markOf(now)) return wrong('a file at rest', 'a file being written')
  } else if (entry.type === 'link') {
    const target = readlinkSync(path)
    if (target !== entry.target) return wrong(`a link to ${entry.target}`, `a link to ${target}`)
  } else {
    const damage = strangerIn(root, entry.path, known.children)
    if (damage) return damage
  }
  return markOf(sealEntry(path, entry))
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

function nameOf(stat: Stats | undefined): string {
  if (!stat) return 'nothing'
  if (stat.isFile()) return NAMES.file
  if (stat.isDirectory()) return NAMES.dir
  return stat.isSymbolicLink() ? NAMES.link : 'a special file'
}
