// A store in memory: for tests, and the shortest form of the Store contract.

import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { type Digest, digestOf } from '../model/digest.ts'
import type { Store } from '../model/ports.ts'
import type { ActionResult } from '../model/result.ts'
import type { Tree } from '../model/tree.ts'

export interface MemoryStore extends Store {
  /** For tests of damage: bytes by digest, of files and logs. */
  readonly blobs: Map<Digest, Buffer>
}

export function openMemoryStore(): MemoryStore {
  const results = new Map<Digest, ActionResult>()
  const trees = new Map<Digest, Tree>()
  const blobs = new Map<Digest, Buffer>()

  function blobOf(digest: Digest): Buffer | undefined {
    const bytes = blobs.get(digest)
    if (bytes && digestOf(bytes) === digest) return bytes
    blobs.delete(digest)
    return undefined
  }
  function isWhole(tree: Tree): boolean {
    return tree.entries.every((entry) => entry.type !== 'file' || blobOf(entry.digest) !== undefined)
  }
  function standing(digest: Digest): Tree | undefined {
    const tree = trees.get(digest)
    if (tree && isWhole(tree)) return tree
    trees.delete(digest)
    return undefined
  }
  function fill(tree: Tree, into: string): void {
    mkdirSync(into)
    for (const entry of tree.entries) {
      const path = `${into}/${entry.path}`
      if (entry.type === 'dir') mkdirSync(path)
      else if (entry.type === 'link') symlinkSync(entry.target, path)
      else writeFileSync(path, blobs.get(entry.digest) ?? '')
    }
    for (const entry of tree.entries.toReversed()) {
      if (entry.type !== 'link') chmodSync(`${into}/${entry.path}`, entry.mode)
    }
  }

  return {
    name: 'memory',
    blobs,
    getResult: async (key) => {
      const result = results.get(key)
      return result && standing(result.tree) && result
    },
    putResult: async (result, { replace }) => {
      const old = results.get(result.actionDigest)
      if (replace || !old || !standing(old.tree)) results.set(result.actionDigest, result)
    },
    hasTree: async (digest) => standing(digest) !== undefined,
    fetchTree: async (digest, into) => {
      const tree = standing(digest)
      if (!tree) return undefined
      const partial = mkdtempSync(`${into}.partial-`)
      try {
        fill(tree, `${partial}/tree`)
        renameSync(`${partial}/tree`, into)
      } finally {
        rmSync(partial, { recursive: true, force: true })
      }
      return tree
    },
    sendTree: async (tree, from) => {
      for (const entry of tree.entries) {
        if (entry.type !== 'file') continue
        const bytes = readFileSync(`${from}/${entry.path}`)
        if (digestOf(bytes) !== entry.digest) throw new Error(`"${entry.path}" is not what was hashed`)
        blobs.set(entry.digest, bytes)
      }
      trees.set(tree.digest, tree)
    },
    getLog: async (digest) => blobOf(digest),
    putLog: async (digest, text) => {
      blobs.set(digest, Buffer.from(text))
    },
  }
}
