// The links `latest/<stage>`: for people, never read by pilot. Each is replaced by a rename, so none is ever missing.

import { readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import type { Digest } from '../../model/digest.ts'
import { type Layout, latestPath, latestTarget } from '../layout.ts'
import { errnoOf } from './disk.ts'

/** Points `latest/<stage>` at a tree. @param temp path of the same file system for the new link */
export function pointLatest(layout: Layout, stage: string, to: { tree: Digest; temp: string }): void {
  const path = latestPath(layout, stage)
  const target = latestTarget(to.tree)
  if (readTarget(path) === target) return
  rmSync(to.temp, { force: true })
  symlinkSync(target, to.temp)
  try {
    renameSync(to.temp, path)
  } catch (error) {
    if (errnoOf(error) !== 'EISDIR') throw error
    // Someone made a folder of this name; nothing of pilot's is in it.
    rmSync(path, { recursive: true })
    renameSync(to.temp, path)
  }
}

/** What the link holds; undefined where there is none or something else. */
function readTarget(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'EINVAL') return undefined
    throw error
  }
}
