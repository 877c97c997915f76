// The store in the cache of GitHub Actions: one entry a result, a tree and a log. Entries are immutable and may be
// evicted at any time; every byte is verified, and what fails is a miss. Loads the library in processes of its own.

import { readFileSync, writeFileSync } from 'node:fs'
import { type Digest, digestOf } from '../../model/digest.ts'
import type { Store } from '../../model/ports.ts'
import type { ActionResult } from '../../model/result.ts'
import { decodeEntry, encodeEntry } from '../remote/entry.ts'
import { openEntries } from './entries.ts'
import { type Environment, requireService, warnOfMissingZstd } from './service.ts'
import { packTree, unpackTree } from './trees.ts'

export interface ActionsCacheOptions {
  /** Folder on the store's file system for what is on its way. */
  readonly tempRoot: string
  readonly onWarning: (message: string) => void
  /** The variables of the runner, and PATH. */
  readonly environment: Environment
}

const resultKey = (digest: Digest): string => `pilot-v1-ac-${digest}-`
const treeKey = (digest: Digest): string => `pilot-v1-tree-${digest}-`
const logKey = (digest: Digest): string => `pilot-v1-log-${digest}-`

/** @throws PilotError `actions-cache-unavailable`. The methods throw RemoteError where the service does not answer. */
export function openActionsCacheStore(options: ActionsCacheOptions): Store {
  const { environment, onWarning } = options
  requireService(environment)
  warnOfMissingZstd(environment, onWarning)
  const entries = openEntries(options)
  /** Keys whose newest entry failed verification: there is one, and it must not count. */
  const damaged = new Set<string>()

  async function restore<T>(prefix: string, read: (bundle: string) => Promise<T | undefined>) {
    const found = await entries.restore(prefix, read)
    if (found && found.content === undefined) damaged.add(prefix)
    return found?.content
  }

  const has = async (prefix: string): Promise<boolean> => !damaged.has(prefix) && entries.has(prefix)

  async function save(prefix: string, fill: (bundle: string) => Promise<void>, anew = false): Promise<void> {
    await entries.save(prefix, anew || damaged.has(prefix), fill)
    damaged.delete(prefix)
  }

  async function getResult(key: Digest): Promise<ActionResult | undefined> {
    const result = await restore(resultKey(key), async (bundle) => {
      const bytes = readIfAny(`${bundle}/result.json`)
      return bytes && decodeEntry(key, bytes)?.result
    })
    return result && (await has(treeKey(result.tree))) ? result : undefined
  }

  return {
    name: 'actions-cache',
    getResult,
    async putResult(result, { replace }) {
      const prefix = resultKey(result.actionDigest)
      // A result whose tree is gone is no result: it gives way.
      if (!replace && (await getResult(result.actionDigest))) return
      const isThere = await entries.has(prefix)
      const bytes = encodeEntry({ result, attestation: null, fence: 0 })
      await save(prefix, async (bundle) => writeFileSync(`${bundle}/result.json`, bytes), isThere)
    },
    hasTree: (digest) => has(treeKey(digest)),
    fetchTree: (digest, into) => restore(treeKey(digest), (bundle) => unpackTree(digest, bundle, into)),
    async sendTree(tree, from) {
      const prefix = treeKey(tree.digest)
      if (!(await has(prefix))) await save(prefix, (bundle) => packTree(tree, from, bundle))
    },
    getLog: (digest) =>
      restore(logKey(digest), async (bundle) => {
        const text = readIfAny(`${bundle}/log`)
        return text && digestOf(text) === digest ? text : undefined
      }),
    async putLog(digest, text) {
      if (digestOf(text) !== digest) throw new TypeError(`this text is not log ${digest}`)
      const prefix = logKey(digest)
      if (!(await has(prefix))) await save(prefix, async (bundle) => writeFileSync(`${bundle}/log`, text))
    },
  }
}

function readIfAny(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}
