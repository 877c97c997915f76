// Takes a snapshot of a source, so that a stage reads what its action was keyed by, whatever is edited meanwhile.

import { chmodSync, constants, copyFileSync, mkdirSync, statSync, symlinkSync } from 'node:fs'
import { basename } from 'node:path'
import type { Digest } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import type { ContentKind } from '../model/stage.ts'
import { contentAt, type Tree } from '../model/tree.ts'
import { INPUT } from './fault.ts'
import { findSource, SOURCE_EXCLUDES, sourceMode } from './source.ts'
import { hashTree } from './tree.ts'
import { walk } from './walk.ts'

export interface ImportOptions {
  /** Absolute path of the source. */
  readonly path: string
  readonly kind: ContentKind
  /** What `hashSource` said when the action was keyed. */
  readonly expected: Digest
  /** Empty folder on the store's file system; to be adopted as the tree. */
  readonly into: string
  readonly signal?: AbortSignal | undefined
}

/** Copies a source into `into`: a folder as it is kept, a file as the only entry, under its own name.
 *  @returns the tree of `into`
 *  @throws PilotError `input-changed` when the copy is not what the action was keyed by */
export async function importSource({ path, kind, expected, into, signal }: ImportOptions): Promise<Tree> {
  if (kind === 'tree') copyFolder(path, into)
  else copyFile(findSource(path, 'file').real, `${into}/${basename(path)}`)
  const tree = await hashTree(into, { signal })
  const got = kind === 'tree' ? tree.digest : contentAt(tree, basename(path))?.digest
  if (got === expected) return tree
  throw new PilotError({
    code: 'input-changed',
    blame: 'user',
    what: `the input "${path}" changed after the run had read it`,
    hint: 'nothing was stored for it: run again once it is no longer being edited',
  })
}

function copyFolder(path: string, into: string): void {
  const { real } = findSource(path, 'tree')
  const made = new Set([''])
  walk(real, { subject: INPUT, exclude: SOURCE_EXCLUDES }, ({ path: name, stat, target }) => {
    // Made when the first file comes: an empty folder is not part of a source.
    if (stat.isDirectory()) return
    makeFolders(into, name, made)
    if (target !== undefined) symlinkSync(target, `${into}/${name}`)
    else copyFile(`${real}/${name}`, `${into}/${name}`)
  })
}

function makeFolders(root: string, path: string, made: Set<string>): void {
  const slash = path.lastIndexOf('/')
  const folder = slash < 0 ? '' : path.slice(0, slash)
  if (made.has(folder)) return
  makeFolders(root, folder, made)
  mkdirSync(`${root}/${folder}`)
  chmodSync(`${root}/${folder}`, 0o755)
  made.add(folder)
}

function copyFile(from: string, to: string): void {
  copyFileSync(from, to, constants.COPYFILE_FICLONE)
  chmodSync(to, sourceMode(statSync(to).mode))
}
