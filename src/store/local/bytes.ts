// What moves bytes in and out of the local store: copies of trees, and logs.

import { mkdtempSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { type Digest, digestOf } from '../../model/digest.ts'
import { PilotError } from '../../model/error.ts'
import type { Store } from '../../model/ports.ts'
import type { Tree } from '../../model/tree.ts'
import { type Layout, logPath } from '../layout.ts'
import { copyTree } from './copy.ts'
import { freePath } from './database.ts'
import { errnoOf, removeFolder, toDiskError } from './disk.ts'
import type { Damage } from './seal.ts'
import type { Temps } from './temps.ts'
import type { Trees } from './trees.ts'

export interface BytesOptions {
  readonly layout: Layout
  readonly trees: Trees
  readonly temps: Temps
  readonly warn: (message: string) => void
}

type Bytes = Pick<Store, 'hasTree' | 'fetchTree' | 'sendTree' | 'getLog' | 'putLog'>

export function openBytes({ layout, trees, temps, warn }: BytesOptions): Bytes {
  async function fetchTree(digest: Digest, into: string): Promise<Tree | undefined> {
    const from = trees.open(digest)
    const tree = trees.read(digest)
    if (from === undefined || !tree) return undefined
    // Beside `into`, so that it appears whole by one rename.
    const partial = mkdtempSync(`${into}.partial-`)
    try {
      const damage = await copyTree(tree.entries, from, `${partial}/tree`)
      if (damage) {
        trees.quarantine(digest, damage)
        return undefined
      }
      renameSync(`${partial}/tree`, into)
      return tree
    } catch (error) {
      // Collected or set aside by another process while it was copied: a miss.
      if (errnoOf(error) === 'ENOENT' && trees.open(digest) === undefined) return undefined
      throw error
    } finally {
      removeFolder(partial)
    }
  }
  async function sendTree(tree: Tree, from: string): Promise<void> {
    if (trees.open(tree.digest) !== undefined) return
    const copy = temps.path('copy')
    const damage = await copyTree(tree.entries, from, copy)
    if (!damage) {
      trees.adopt(tree, copy)
      return
    }
    removeFolder(copy)
    throw changedSource(from, damage)
  }
  function getLog(digest: Digest): Buffer | undefined {
    const path = logPath(layout, digest)
    let text: Buffer
    try {
      text = readFileSync(path)
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return undefined
      throw error
    }
    if (digestOf(text) === digest) return text
    const aside = freePath(layout.quarantine, `log-${digest}`)
    renameSync(path, aside)
    warn(`a stored log was damaged: moved to ${aside}`)
    return undefined
  }
  function putLog(digest: Digest, text: Uint8Array): void {
    if (digestOf(text) !== digest) throw new TypeError(`this text is not log ${digest}`)
    const temp = temps.path('log')
    writeFileSync(temp, text, { mode: 0o444 })
    renameSync(temp, logPath(layout, digest))
  }
  return {
    hasTree: async (digest) => trees.open(digest) !== undefined,
    fetchTree: (digest, into) => naming(into, () => fetchTree(digest, into)),
    sendTree: (tree, from) => naming(layout.trees, () => sendTree(tree, from)),
    getLog: (digest) => naming(layout.logs, async () => getLog(digest)),
    putLog: (digest, text) => naming(layout.logs, async () => putLog(digest, text)),
  }
}

/** As `onDisk`, for work that takes turns. */
async function naming<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    throw toDiskError(error, path)
  }
}

function changedSource(from: string, damage: Damage): PilotError {
  return new PilotError({
    code: 'tree-changed',
    blame: 'environment',
    what: `"${damage.path}" is not what was hashed: expected ${damage.expected}, got ${damage.got}`,
    where: from,
    hint: 'nothing was stored: run again',
  })
}
