// Looking after the local store: verify re-reads everything it holds; pins are names under which gc keeps things.
// gc itself is collect.ts.

import { readdirSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Digest } from '../model/digest.ts'
import type { LocalStore } from '../model/ports.ts'
import type { Damage } from './local/seal.ts'
import { partsOf } from './local.ts'

export interface VerifyOptions {
  readonly onProgress?: (done: { readonly doneBytes: number; readonly totalBytes: number }) => void
  readonly signal?: AbortSignal
}

export interface DamagedTree extends Damage {
  readonly tree: Digest
}

export interface VerifyReport {
  readonly trees: number
  readonly results: number
  readonly logs: number
  readonly bytes: number
  /** Moved to quarantine/. */
  readonly damagedTrees: readonly DamagedTree[]
  /** Known to the index and not there; forgotten. */
  readonly missingTrees: readonly Digest[]
  /** Moved to quarantine/. */
  readonly damagedLogs: readonly Digest[]
  /** Results whose row was damaged; forgotten. */
  readonly damagedResults: readonly Digest[]
  /** Results whose tree is not there; forgotten: their action runs again. */
  readonly danglingResults: readonly Digest[]
}

/** True when nothing was found. */
export function isClean(report: VerifyReport): boolean {
  const { damagedTrees, missingTrees, damagedLogs, damagedResults, danglingResults } = report
  return [damagedTrees, missingTrees, damagedLogs, damagedResults, danglingResults].every(
    (list) => list.length === 0,
  )
}

/** Hashes all that is stored and sets aside what is damaged. */
export async function verifyStore(store: LocalStore, options: VerifyOptions = {}): Promise<VerifyReport> {
  const trees = await verifyTrees(store, options)
  const results = verifyResults(store)
  const logs = await verifyLogs(store)
  return { ...trees, ...results, ...logs }
}

async function verifyTrees(store: LocalStore, { onProgress, signal }: VerifyOptions) {
  const { db, trees } = partsOf(store)
  const damagedTrees: DamagedTree[] = []
  const missingTrees: Digest[] = []
  const rows = db.all(
    'SELECT t.digest, coalesce(m.bytes, 0) FROM trees t LEFT JOIN manifests m ON m.digest = t.digest',
  )
  const totalBytes = rows.reduce((sum, [, bytes]) => sum + Number(bytes), 0)
  let doneBytes = 0
  for (const [digest, bytes] of rows) {
    // Digests are what the column holds.
    const tree = digest as Digest
    const damage = trees.verify(tree)
    if (damage && damage.path === '.' && damage.got === 'nothing') missingTrees.push(tree)
    else if (damage) damagedTrees.push({ tree, ...damage })
    doneBytes += Number(bytes)
    onProgress?.({ doneBytes, totalBytes })
    await nextTurn()
    signal?.throwIfAborted()
  }
  return { trees: rows.length, bytes: totalBytes, damagedTrees, missingTrees }
}

function verifyResults(store: LocalStore) {
  const { db } = partsOf(store)
  const damagedResults: Digest[] = []
  const danglingResults: Digest[] = []
  const keys = db.all('SELECT key, tree FROM results')
  for (const [key, tree] of keys) {
    const digest = key as Digest
    if (!store.readResult(digest)) {
      damagedResults.push(digest)
      continue
    }
    // Under the write lock: a running pilot may be putting the tree there.
    const isDangling = db.write(() => {
      if (db.get('SELECT 1 FROM trees WHERE digest = ?', String(tree))) return false
      db.run('DELETE FROM results WHERE key = ? AND tree = ?', digest, String(tree))
      return true
    })
    if (isDangling) danglingResults.push(digest)
  }
  return { results: keys.length, damagedResults, danglingResults }
}

async function verifyLogs(store: LocalStore) {
  const { layout } = partsOf(store)
  const damagedLogs: Digest[] = []
  const names = readdirSync(layout.logs)
  for (const name of names) {
    // Named by digest; one that is not fails its check as any damaged log.
    const text = await store.getLog(name as Digest)
    if (!text) damagedLogs.push(name as Digest)
  }
  return { logs: names.length, damagedLogs }
}

/** Keeps actions or trees from gc until `unpin`. A name pinned again is pinned to the new digests only. */
export function pin(store: LocalStore, name: string, digests: readonly Digest[]): void {
  const { db } = partsOf(store)
  db.write(() => {
    db.run('DELETE FROM pins WHERE name = ?', name)
    for (const digest of digests) db.run('INSERT OR IGNORE INTO pins VALUES (?, ?)', name, digest)
  })
}

/** False where nothing was pinned under the name. */
export function unpin(store: LocalStore, name: string): boolean {
  return partsOf(store).db.run('DELETE FROM pins WHERE name = ?', name) > 0
}

/** What is pinned, by name. */
export function listPins(store: LocalStore): ReadonlyMap<string, readonly Digest[]> {
  const pins = new Map<string, Digest[]>()
  for (const [name, digest] of partsOf(store).db.all('SELECT name, digest FROM pins ORDER BY name')) {
    const list = pins.get(String(name)) ?? []
    list.push(digest as Digest)
    pins.set(String(name), list)
  }
  return pins
}
