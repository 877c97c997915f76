// The images of a pipeline that are named by a tag: `pilot lock` asks which digest each stands for and writes it down.

import { join } from 'node:path'
import { IMAGE_LOCK, type ImageLock, readImageLock } from '../declare/image-lock.ts'
import { resolveTag } from '../execute/container/resolve.ts'
import { print } from './session.ts'
import { writeWhole } from './write-file.ts'

interface LockOptions {
  /** Folder of the project. */
  readonly root: string
  /** Say what differs and write nothing. */
  readonly isCheck: boolean
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** @param images every one with a tag. @returns 0, or 1 where a check found a tag that moved */
export async function lockImages(images: readonly string[], options: LockOptions): Promise<number> {
  const { root, isCheck, environment } = options
  const before = readImageLock(root)
  // Tags that only another recipe names stay as they are.
  const after: Record<string, string> = { ...before }
  for (const image of images) after[image] = await resolveTag(image, environment)
  const told = changes(before, after)
  for (const line of told) print(line)
  if (told.length === 0) return 0
  if (isCheck) return 1
  const sorted = Object.fromEntries(Object.entries(after).sort())
  writeWhole(join(root, IMAGE_LOCK), `${JSON.stringify(sorted, null, 2)}\n`)
  return 0
}

/** One line for each tag that moved or is new: `name:tag: old -> new`. */
function changes(before: ImageLock, after: ImageLock): readonly string[] {
  return Object.keys(after)
    .sort()
    .filter((tag) => before[tag] !== after[tag])
    .map((tag) => `${tag}: ${before[tag] ?? '(none)'} -> ${after[tag]}`)
}
