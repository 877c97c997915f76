// gc of a remote store. Roots are small objects, so several projects share one store: each writes its own.
// Order: results, then the trees, packs, parts and logs that no result is left to name. What is younger than the grace
// stays, and what a push needs again it writes anew first (upload.ts); each deletion looks at the age once more.

import * as z from 'zod'
import type { Digest } from '../../model/digest.ts'
import { inParallel } from './budget.ts'
import { decodeEntry } from './entry.ts'
import { AC, BLOBS, LEASES, LOGS, PACKS, QUARANTINE, ROOTS, TREES } from './keys.ts'
import { decodeManifest, objectsOf } from './manifest.ts'
import type { ListedObject, ObjectStore } from './objects.ts'

export interface RemoteCollectOptions {
  /** The last so many good runs of each project keep what they used. */
  readonly keepRuns: number
  readonly graceMs: number
  readonly dryRun: boolean
  readonly onProgress?: (objects: number) => void
}

export interface RemoteCollectRow {
  readonly reason: string
  readonly count: number
  readonly bytes: number
}

export interface RemoteCollectReport {
  readonly removed: readonly RemoteCollectRow[]
  readonly kept: readonly RemoteCollectRow[]
  readonly removedBytes: number
}

/** Requests at the same time. */
const PARALLEL = 24

const ROOT = z.looseObject({
  schema: z.literal('pilot.root.v1'),
  project: z.string(),
  at: z.string(),
  pin: z.string().optional(),
  good: z.boolean().optional(),
  keys: z.array(z.string()),
})

export async function collectRemote(
  objects: ObjectStore,
  options: RemoteCollectOptions,
): Promise<RemoteCollectReport> {
  const cutoffMs = (await serverNow(objects, options.dryRun)) - options.graceMs
  const tally = openTally()
  const isOld = (object: ListedObject): boolean => object.modifiedMs < cutoffMs
  const drop = (reason: string, listed: readonly ListedObject[]) =>
    remove(objects, listed, { reason, cutoffMs, options, tally })

  const { pinned, recent, stale } = await readRoots(objects, options.keepRuns)
  await drop('old run', stale.filter(isOld))

  const trees = new Set<string>()
  const logs = new Set<string>()
  const doomed: ListedObject[] = []
  await each(objects, AC, async (object, key) => {
    const reason = pinned.has(key)
      ? 'pinned'
      : recent.has(key)
        ? 'recent run'
        : isOld(object)
          ? undefined
          : 'in grace'
    if (reason === undefined) {
      doomed.push(object)
      return
    }
    tally.kept(reason, object.sizeBytes)
    const found = await objects.get(object.key)
    const entry = found && decodeEntry(key as Digest, found.bytes)
    if (!entry) return
    trees.add(entry.result.tree)
    if (entry.result.record.log) logs.add(entry.result.record.log.digest)
  })
  await drop('unreachable result', doomed)

  const named = new Set<string>()
  const doomedTrees: ListedObject[] = []
  await each(objects, TREES, async (object, digest) => {
    if (!trees.has(digest) && isOld(object)) {
      doomedTrees.push(object)
      return
    }
    tally.kept(trees.has(digest) ? 'named by a kept result' : 'in grace', object.sizeBytes)
    const found = await objects.get(object.key)
    const manifest = found && decodeManifest(digest as Digest, found.bytes)
    for (const key of manifest ? objectsOf(manifest) : []) named.add(key)
  })
  await drop('unreachable tree', doomedTrees)

  for (const [prefix, reason] of [
    [PACKS, 'unreachable content'],
    [BLOBS, 'unreachable content'],
    [LOGS, 'unreachable log'],
    [QUARANTINE, 'quarantined'],
    [LEASES, 'ended lease'],
  ] as const) {
    const gone: ListedObject[] = []
    for await (const object of objects.list(prefix)) {
      const isNamed = named.has(object.key) || (prefix === LOGS && logs.has(object.key.slice(prefix.length)))
      if (!isNamed && isOld(object)) gone.push(object)
      else tally.kept(isNamed ? 'named by a kept result' : 'in grace', object.sizeBytes)
    }
    await drop(reason, gone)
  }
  return tally.report()
}

/** The age of an object is told by the server's clock, so now is asked of it too. */
async function serverNow(objects: ObjectStore, dryRun: boolean): Promise<number> {
  if (dryRun) return Date.now()
  await objects.put(`${ROOTS}clock`, Buffer.from('{}'))
  return (await objects.head(`${ROOTS}clock`))?.modifiedMs ?? Date.now()
}

async function readRoots(objects: ObjectStore, keepRuns: number) {
  const pinned = new Set<string>()
  const runs: { readonly object: ListedObject; readonly root: z.infer<typeof ROOT> }[] = []
  await each(objects, ROOTS, async (object) => {
    const found = await objects.get(object.key)
    const root = found && ROOT.safeParse(parseJson(found.bytes)).data
    if (!root) return
    if (root.pin === undefined) runs.push({ object, root })
    else for (const key of root.keys) pinned.add(key)
  })
  const recent = new Set<string>()
  const stale: ListedObject[] = []
  const left = new Map<string, number>()
  for (const { object, root } of runs.sort((a, b) => (a.root.at < b.root.at ? 1 : -1))) {
    const more = left.get(root.project) ?? keepRuns
    if (more <= 0) {
      stale.push(object)
      continue
    }
    // A failed run newer than a kept one stays too: what it made is what the next one starts from.
    if (root.good) left.set(root.project, more - 1)
    for (const key of root.keys) recent.add(key)
  }
  return { pinned, recent, stale }
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

async function each(
  objects: ObjectStore,
  prefix: string,
  act: (object: ListedObject, name: string) => Promise<void>,
): Promise<void> {
  const listed: ListedObject[] = []
  for await (const object of objects.list(prefix)) listed.push(object)
  await inParallel(listed, PARALLEL, (object) => act(object, object.key.slice(prefix.length)))
}

interface Removal {
  readonly reason: string
  readonly cutoffMs: number
  readonly options: RemoteCollectOptions
  readonly tally: ReturnType<typeof openTally>
}

async function remove(
  objects: ObjectStore,
  listed: readonly ListedObject[],
  { reason, cutoffMs, options, tally }: Removal,
): Promise<void> {
  const going: ListedObject[] = []
  await inParallel(listed, PARALLEL, async (object) => {
    // Written anew since it was listed: somebody needs it.
    const facts = options.dryRun ? object : await objects.head(object.key)
    if (facts && facts.modifiedMs < cutoffMs) going.push(object)
  })
  if (!options.dryRun) await objects.remove(going.map(({ key }) => key))
  for (const { sizeBytes } of going) tally.removed(reason, sizeBytes)
  options.onProgress?.(going.length)
}

function openTally() {
  const rows = { removed: new Map<string, RemoteCollectRow>(), kept: new Map<string, RemoteCollectRow>() }
  const count = (into: Map<string, RemoteCollectRow>, reason: string, bytes: number): void => {
    const row = into.get(reason)
    into.set(reason, { reason, count: (row?.count ?? 0) + 1, bytes: (row?.bytes ?? 0) + bytes })
  }
  return {
    removed: (reason: string, bytes: number) => count(rows.removed, reason, bytes),
    kept: (reason: string, bytes: number) => count(rows.kept, reason, bytes),
    report: (): RemoteCollectReport => ({
      removed: [...rows.removed.values()],
      kept: [...rows.kept.values()],
      removedBytes: [...rows.removed.values()].reduce((sum, { bytes }) => sum + bytes, 0),
    }),
  }
}
