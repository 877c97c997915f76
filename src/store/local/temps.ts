// Temporary folders of one process, all below tmp/<owner>, so that the next pilot can tell whose they were.

import { mkdirSync } from 'node:fs'
import { type Layout, tempOf } from '../layout.ts'
import { onDisk } from './disk.ts'

export interface Temps {
  make(label: string): string
  /** A path nobody uses, in this process's own folder. */
  path(label: string): string
}

export function openTemps(layout: Layout, owner: string): Temps {
  const folder = tempOf(layout, owner)
  let count = 0
  function path(label: string): string {
    if (count === 0) mkdirSync(folder, { recursive: true })
    return `${folder}/${label.replace(/[^A-Za-z0-9._-]/g, '_')}-${count++}`
  }
  return { path, make: (label) => makeFolder(path(label)) }
}

export function makeFolder(path: string): string {
  onDisk(path, () => mkdirSync(path, { recursive: true }))
  return path
}
