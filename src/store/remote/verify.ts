// Reads everything a remote store holds against the digests it is named by. What is bad is set aside; with `heal` it is
// sent again by who has it, and a result whose tree cannot be healed goes too, so that its producer runs again.

import type { Digest } from '../../model/digest.ts'
import { AC, LOGS, TREES } from './keys.ts'
import type { RemoteStore } from './store.ts'

export interface RemoteVerifyOptions {
  /** Sends a tree again; false where it is not here. */
  readonly heal?: ((tree: Digest) => Promise<boolean>) | undefined
  readonly onProgress?: (looked: number) => void
  readonly signal?: AbortSignal | undefined
}

export interface RemoteVerifyReport {
  readonly results: number
  readonly trees: number
  readonly logs: number
  /** Keys of objects that are gone or wrong. */
  readonly damaged: readonly string[]
  /** Trees sent again. */
  readonly healed: readonly Digest[]
  /** Actions whose result is set aside: their producers run again. */
  readonly dropped: readonly Digest[]
}

export async function verifyRemote(
  store: RemoteStore,
  { heal, onProgress, signal }: RemoteVerifyOptions = {},
): Promise<RemoteVerifyReport> {
  const { objects } = store
  const damaged: string[] = []
  const healed: Digest[] = []
  const dropped: Digest[] = []
  const trees = new Map<Digest, Digest[]>()
  let results = 0
  for (const key of await namesBelow(store, AC)) {
    results++
    const { entry } = await store.read(key)
    if (!entry) damaged.push(AC + key)
    else trees.set(entry.result.tree, [...(trees.get(entry.result.tree) ?? []), key])
  }
  const all = new Set([...trees.keys(), ...(await namesBelow(store, TREES))])
  for (const tree of all) {
    signal?.throwIfAborted()
    const bad = await store.inspectTree(tree)
    onProgress?.(all.size)
    if (bad.length === 0) continue
    damaged.push(...bad)
    if (await heal?.(tree)) {
      healed.push(tree)
    } else if (heal) {
      for (const key of trees.get(tree) ?? []) {
        await objects.remove([AC + key])
        dropped.push(key)
      }
      await objects.remove([TREES + tree])
    }
  }
  const logs = await namesBelow(store, LOGS)
  for (const log of logs) {
    if (!(await store.getLog(log))) damaged.push(LOGS + log)
  }
  return { results, trees: all.size, logs: logs.length, damaged, healed, dropped }
}

/** Names below a prefix; each is a digest, or fails its check as damage does. */
async function namesBelow({ objects }: RemoteStore, prefix: string): Promise<readonly Digest[]> {
  const names: Digest[] = []
  for await (const { key } of objects.list(prefix)) names.push(key.slice(prefix.length) as Digest)
  return names
}
