// The links `latest/<stage>`: for people, never read by pilot. Each is replaced by a rename, so none is ever missing.
// To look at ten thousand links each run would cost more than the rest of it, so what they hold is noted in the index
// together with the folder's mtime, set to a random time of long ago: any later change of a link changes it.

import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from 'node:fs'
import { dirname } from 'node:path'
import type { Digest } from '../../model/digest.ts'
import { type Layout, latestPath, latestTarget } from '../layout.ts'
import type { Database } from './database.ts'
import { errnoOf } from './disk.ts'
import type { Temps } from './temps.ts'

export interface Latest {
  point(stage: string, tree: Digest): void
  /** Notes what the links hold. */
  close(): void
}

/** From so many links on, reading the note is cheaper than reading links. */
const NOTE_FROM = 50
/** Range of the noted mtime in seconds: 1973 to 2001. */
const OLDEST_S = 100_000_000
const SPAN_S = 900_000_000

export function openLatest(layout: Layout, db: Database, temps: Temps): Latest {
  let noted: ReadonlyMap<string, string> | undefined
  let asked = 0
  let isChanged = false

  function point(stage: string, tree: Digest): void {
    const target = latestTarget(tree)
    if (++asked === NOTE_FROM) noted = readNote(layout, db)
    if (!isChanged && noted?.get(stage) === target) return
    const path = latestPath(layout, stage)
    if (readTarget(path) === target) return
    isChanged = true
    place(target, path, temps)
  }

  function close(): void {
    if (asked < NOTE_FROM || (noted && !isChanged)) return
    writeNote(layout, db)
  }

  return { point, close }
}

function place(target: string, path: string, temps: Temps): void {
  const temp = temps.path('link')
  symlinkSync(target, temp)
  try {
    renameSync(temp, path)
  } catch (error) {
    const errno = errnoOf(error)
    // Someone made a folder of this name, or removed the folder of links: nothing of pilot's is lost by either.
    if (errno === 'EISDIR') rmSync(path, { recursive: true })
    else if (errno === 'ENOENT') mkdirSync(dirname(path), { recursive: true })
    else throw error
    renameSync(temp, path)
  }
}

/** What the link holds; undefined where there is none or something else. */
function readTarget(path: string): string | undefined {
  // Asked first: an exception costs more than both calls.
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? readlinkSync(path) : undefined
}

/** Lines of the note: mtime in seconds, then stage and target by turns. */
function readNote(layout: Layout, db: Database): ReadonlyMap<string, string> | undefined {
  const text = db.get("SELECT value FROM facts WHERE name = 'latest'")?.[0]
  if (typeof text !== 'string') return undefined
  const lines = text.split('\n')
  const folder = lstatSync(layout.latest, { throwIfNoEntry: false })
  if (folder?.mtimeMs !== Number(lines[0]) * 1000) return undefined
  const links = new Map<string, string>()
  for (let i = 1; i + 1 < lines.length; i += 2) links.set(lines[i] ?? '', lines[i + 1] ?? '')
  return links
}

/** The time is set before the links are read: a link changed before is seen, one changed after unsets the time. */
function writeNote(layout: Layout, db: Database): void {
  const second = OLDEST_S + Math.floor(Math.random() * SPAN_S)
  utimesSync(layout.latest, second, second)
  const lines = [String(second)]
  for (const name of readdirSync(layout.latest)) {
    const target = readTarget(latestPath(layout, name))
    if (target !== undefined) lines.push(name, target)
  }
  db.run("INSERT OR REPLACE INTO facts VALUES ('latest', ?)", lines.join('\n'))
}
