// Images named by a tag: locks/images.json says which digest each tag stands for. Written by `pilot lock` alone.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { PilotError } from '../model/error.ts'
import { formatIssues } from './issues.ts'

/** Path in the project. */
export const IMAGE_LOCK = 'locks/images.json'

/** `registry/name:tag` -> `sha256:…`. */
export type ImageLock = Readonly<Record<string, string>>

const imageLock = z.record(z.string(), z.string().regex(/^sha256:[0-9a-f]{64}$/))

/** @throws PilotError `invalid-image-lock` */
export function readImageLock(root: string): ImageLock {
  const path = join(root, IMAGE_LOCK)
  if (!existsSync(path)) return {}
  const parsed = imageLock.safeParse(parse(path))
  if (parsed.success) return parsed.data
  throw invalid(path, formatIssues(parsed.error.issues))
}

/** The image by digest; as it was declared where the tag is not locked, which the plan then refuses. */
export function pinImage(image: string, lock: ImageLock): string {
  const digest = Object.hasOwn(lock, image) ? lock[image] : undefined
  return digest === undefined ? image : `${image.replace(TAG, '')}@${digest}`
}

const TAG = /:[\w][\w.-]{0,127}$/

/** True for an image that is to be looked up by its tag. A name with neither tag nor digest is not one: it would mean
 *  another image every day. */
export function hasTag(image: string): boolean {
  return !image.includes('@') && TAG.test(image)
}

function parse(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw invalid(path, String(error))
  }
}

function invalid(path: string, why: string): PilotError {
  return new PilotError({
    code: 'invalid-image-lock',
    blame: 'user',
    what: `${IMAGE_LOCK} is not a list of tags and digests: ${why}`,
    where: path,
    hint: 'delete it and write it anew: pilot lock',
  })
}
