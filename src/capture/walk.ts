// Walks a folder: what is in it, before any content is read. Knows what may not be in a tree.

import { lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs'
import { posix } from 'node:path'
import { escapes, isMisnamed, isSpecial, isUnreadable, type Subject } from './fault.ts'

export interface Found {
  /** Relative to the root, with `/`. */
  readonly path: string
  readonly stat: Stats
  /** Of a link, what it holds. */
  readonly target?: string
}

export interface WalkOptions {
  readonly subject: Subject
  /** Names left out at every level. */
  readonly exclude: ReadonlySet<string>
}

/** Calls `visit` for every entry below `root`, a folder before what is in it. The order is the disk's.
 *  @throws PilotError `…-escapes`, `…-special`, `…-name`, `…-unreadable` */
export function walk(root: string, options: WalkOptions, visit: (found: Found) => void): void {
  const folders = ['']
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const name of namesIn(root, folder, options.subject)) {
      if (options.exclude.has(name)) continue
      const path = folder === '' ? name : `${folder}/${name}`
      const found = look(root, path, options.subject)
      visit(found)
      if (found.stat.isDirectory()) folders.push(path)
    }
  }
}

function look(root: string, path: string, subject: Subject): Found {
  const stat = lstatSync(`${root}/${path}`)
  if (stat.isFile() || stat.isDirectory()) return { path, stat }
  if (!stat.isSymbolicLink()) throw isSpecial(subject, path, nameSpecial(stat))
  const bytes = readlinkSync(`${root}/${path}`, 'buffer')
  const target = bytes.toString()
  if (!bytes.equals(Buffer.from(target))) throw isMisnamed(subject, path, bytes)
  if (isOutside(root, path, target)) throw escapes(subject, path, target)
  return { path, stat, target }
}

/** Links are judged from their text, the walk itself never follows one. Only a `..` behind a name needs a look at the
 *  disk: `name` may be a link, and `name/..` then is not where it seems. */
function isOutside(root: string, path: string, target: string): boolean {
  if (target.startsWith('/')) return true
  const folder = posix.dirname(path)
  if (/(^|\/)(?!\.\.?(\/|$))[^/]+\/+(\.\/+)*\.\.(\/|$)/.test(target))
    return leadsOutside(root, folder, target)
  const led = posix.join(folder, target)
  return led === '..' || led.startsWith('../')
}

/** Follows `target` from `folder` step by step, as the kernel does. More links than it would follow count as outside. */
function leadsOutside(root: string, folder: string, target: string): boolean {
  const at = folder === '.' ? [] : folder.split('/')
  const ahead = target.split('/')
  let links = 0
  for (let step = ahead.shift(); step !== undefined; step = ahead.shift()) {
    if (step === '' || step === '.') continue
    if (step === '..') {
      if (at.pop() === undefined) return true
      continue
    }
    const path = [root, ...at, step].join('/')
    if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) {
      at.push(step)
      continue
    }
    const next = readlinkSync(path)
    if (++links > MAX_LINKS || next.startsWith('/')) return true
    ahead.unshift(...next.split('/'))
  }
  return false
}

const MAX_LINKS = 40

function namesIn(root: string, folder: string, subject: Subject): readonly string[] {
  const path = folder === '' ? root : `${root}/${folder}`
  let names: string[]
  try {
    names = readdirSync(path)
  } catch (error) {
    throw isUnreadable(subject, folder || '.', error)
  }
  // Node puts U+FFFD where a name is not UTF-8; the character itself is a name's good right.
  if (!names.some((name) => name.includes('\ufffd'))) return names
  for (const bytes of readdirSync(path, 'buffer')) {
    if (!bytes.equals(Buffer.from(bytes.toString()))) throw isMisnamed(subject, folder, bytes)
  }
  return names
}

function nameSpecial(stat: Stats): string {
  if (stat.isFIFO()) return 'a named pipe'
  if (stat.isSocket()) return 'a socket'
  return 'a device'
}
