// A store in a bucket: blobs first, manifest next, result last; every read verified; what fails is set aside and is a
// miss. Policy (which store is asked first, what a failure means for a run) is tiers.ts.

import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { type Digest, digestOf } from '../../model/digest.ts'
import type { Store } from '../../model/ports.ts'
import type { ActionResult } from '../../model/result.ts'
import { sizeOf } from '../../model/tree.ts'
import { openBudget } from './budget.ts'
import { DamagedObject, downloadTree, inspectObjects, missingObjects } from './download.ts'
import { decodeEntry, type Entry, encodeEntry, isConsistent } from './entry.ts'
import { AC, LOGS, QUARANTINE, ROOTS, TREES } from './keys.ts'
import { type Leases, openLeases } from './leases.ts'
import { decodeManifest, type Manifest } from './manifest.ts'
import type { ObjectStore } from './objects.ts'
import { NO_POLICY, type Policy, type Signer } from './trust.ts'
import { uploadTree } from './upload.ts'

export interface RemoteStore extends Store {
  readonly objects: ObjectStore
  readonly leases: Leases
  /** The entry of an action as it stands, whoever wrote it; a damaged one is set aside. */
  read(key: Digest): Promise<{ readonly entry?: Entry }>
  /** As `getResult`, with why there is none where it is there but not accepted. */
  explain(key: Digest): Promise<{ readonly entry?: Entry; readonly refused?: string }>
  /** As `putResult`, under a lease: a result of a later fence is not replaced. */
  publish(result: ActionResult, options: { readonly replace: boolean; readonly fence: number }): Promise<void>
  /** Reads every object of a tree and sets the bad ones aside. */
  inspectTree(digest: Digest): Promise<readonly string[]>
  /** Writes down what gc must keep. */
  putRoot(name: string, root: unknown): Promise<void>
}

export interface RemoteOptions {
  readonly objects: ObjectStore
  readonly holder: string
  readonly beatMs: number
  readonly policy?: Policy | undefined
  readonly signer?: Signer | undefined
  /** False: nothing is written, not even what heals. */
  readonly isWritable: boolean
  /** Told what was refused or set aside. */
  readonly onWarning: (code: string, message: string) => void
  readonly onBytes?: (direction: 'up' | 'down', bytes: number, of: Digest) => void
  readonly now?: () => Date
}

/** Bytes of content in memory at the same time, of all transfers. */
const BUDGET_BYTES = 144 << 20
/** gc's grace is a day at least; what is older than half of it is written anew by who needs it. */
const REFRESH_MS = 12 * 3_600_000

export function openRemoteStore(options: RemoteOptions): RemoteStore {
  const { objects, policy = NO_POLICY, signer, isWritable, onWarning, now = () => new Date() } = options
  const budget = openBudget(BUDGET_BYTES)
  const leases = openLeases({ objects, holder: options.holder, beatMs: options.beatMs, now })
  /** Of trees asked for by `getResult` and then fetched. */
  const manifests = new Map<Digest, Manifest>()

  const transfer = (direction: 'up' | 'down', of: Digest) => ({
    objects,
    budget,
    refreshMs: REFRESH_MS,
    now: Date.now,
    onBytes: (bytes: number) => options.onBytes?.(direction, bytes, of),
  })

  /** What failed verification goes out of the way, and may be looked at. */
  async function setAside(key: string, why: string): Promise<void> {
    onWarning('remote-damaged', `${objects.name}: ${key} ${why}${isWritable ? '; it is set aside' : ''}`)
    if (!isWritable) return
    const stamp = now().toISOString().replaceAll(/[-:.]/g, '')
    if (await objects.copy(key, `${QUARANTINE}${stamp}-${key.slice('v1/'.length).replaceAll('/', '-')}`)) {
      await objects.remove([key])
    }
  }

  async function manifestOf(digest: Digest): Promise<Manifest | undefined> {
    const known = manifests.get(digest)
    if (known) return known
    const object = await objects.get(TREES + digest)
    const manifest = object && decodeManifest(digest, object.bytes)
    if (manifest) manifests.set(digest, manifest)
    else if (object) await setAside(TREES + digest, 'is no manifest of the tree it is named after')
    return manifest
  }

  /** The manifest of a tree all of whose objects are there. */
  async function wholeTree(digest: Digest): Promise<Manifest | undefined> {
    const manifest = await manifestOf(digest)
    if (!manifest) return undefined
    const missing = await missingObjects(objects, manifest)
    if (missing.length === 0) return manifest
    manifests.delete(digest)
    onWarning(
      'remote-incomplete',
      `${objects.name}: ${missing.length} objects of tree ${digest.slice(0, 12)} are gone, ${missing[0]} among them`,
    )
    return undefined
  }

  async function readEntry(key: Digest) {
    const object = await objects.get(AC + key)
    const entry = object && decodeEntry(key, object.bytes)
    if (object && !entry) await setAside(AC + key, 'is no result of the action it is named after')
    return entry && { entry, etag: object.etag }
  }

  async function explain(key: Digest): ReturnType<RemoteStore['explain']> {
    const found = await readEntry(key)
    if (!found) return {}
    const { entry } = found
    const refused = policy.refuse(entry.result, entry.attestation)
    if (refused) return { entry, refused }
    const manifest = await wholeTree(entry.result.tree)
    if (!manifest) return { entry, refused: 'its outputs are not all there' }
    if (!isConsistent(entry.result, manifest.tree))
      return { entry, refused: 'its outputs are not those of its tree' }
    return { entry }
  }

  async function getResult(key: Digest): Promise<ActionResult | undefined> {
    const { entry, refused } = await explain(key)
    if (refused && entry) {
      onWarning(
        'remote-refused',
        `${objects.name}: the result of stage "${entry.result.record.stage}" (${key.slice(0, 12)}) is not used: ${refused}`,
      )
      return undefined
    }
    return entry?.result
  }

  async function publish(
    result: ActionResult,
    { replace, fence }: { readonly replace: boolean; readonly fence: number },
  ): Promise<void> {
    const key = result.actionDigest
    const bytes = encodeEntry({ result, attestation: signer?.sign(result) ?? null, fence })
    if ((await objects.put(AC + key, bytes, { type: 'absent' })) !== undefined) return
    const old = await readEntry(key)
    // Set aside just now, or gone: its place is free.
    if (!old) return void (await objects.put(AC + key, bytes, { type: 'absent' }))
    if (old.entry.fence > fence) return
    const isGood =
      policy.refuse(old.entry.result, old.entry.attestation) === undefined &&
      (await wholeTree(old.entry.result.tree)) !== undefined
    if (!replace && isGood) return
    if (replace) await setAsideOld(key)
    await objects.put(AC + key, bytes, { type: 'same', etag: old.etag })
  }

  /** A replaced entry is kept to be looked at: somebody held it to be wrong. */
  async function setAsideOld(key: Digest): Promise<void> {
    const stamp = now().toISOString().replaceAll(/[-:.]/g, '')
    await objects.copy(AC + key, `${QUARANTINE}${stamp}-ac-${key}`)
  }

  async function heal(error: unknown, digest: Digest): Promise<undefined> {
    if (!(error instanceof DamagedObject)) throw error
    manifests.delete(digest)
    // A manifest that names the wrong parts is bad itself.
    const key = error.key.startsWith('v1/') ? error.key : TREES + digest
    if (error.isGone) onWarning('remote-incomplete', `${objects.name}: ${error.message}`)
    else await setAside(key, 'does not hold what its name says')
    return undefined
  }

  return {
    name: objects.name,
    objects,
    leases,
    read: async (key) => (await readEntry(key)) ?? {},
    explain,
    getResult,
    publish,
    putResult: (result, { replace }) => publish(result, { replace, fence: 0 }),
    hasTree: async (digest) => (await wholeTree(digest)) !== undefined,
    async fetchTree(digest, into) {
      const manifest = await manifestOf(digest)
      if (!manifest) return undefined
      try {
        await downloadTree(transfer('down', digest), manifest, into)
        return manifest.tree
      } catch (error) {
        return heal(error, digest)
      }
    },
    async sendTree(tree, from) {
      manifests.delete(tree.digest)
      if (await wholeTree(tree.digest)) {
        options.onBytes?.('up', sizeOf(tree.entries), tree.digest)
        return
      }
      await uploadTree(transfer('up', tree.digest), tree, from)
    },
    async inspectTree(digest) {
      manifests.delete(digest)
      const manifest = await manifestOf(digest)
      if (!manifest) return [TREES + digest]
      const damaged = await inspectObjects(transfer('down', digest), manifest)
      for (const error of damaged) await heal(error, digest)
      return damaged.map(({ key }) => key)
    },
    async getLog(digest) {
      const object = await objects.get(LOGS + digest)
      if (!object) return undefined
      const text = decompress(object.bytes)
      if (text && digestOf(text) === digest) return text
      await setAside(LOGS + digest, 'is not the log it is named after')
      return undefined
    },
    async putLog(digest, text) {
      if (digestOf(text) !== digest) throw new TypeError(`this text is not log ${digest}`)
      const bytes = zstdCompressSync(text, { params: { [constants.ZSTD_c_compressionLevel]: 3 } })
      await objects.put(LOGS + digest, bytes, { type: 'absent' })
    },
    async putRoot(name, root) {
      await objects.put(ROOTS + name, Buffer.from(JSON.stringify(root)))
    },
  }
}

/** Largest log that is read back. */
const MAX_LOG_BYTES = 1 << 28

function decompress(bytes: Buffer): Buffer | undefined {
  try {
    return zstdDecompressSync(bytes, { maxOutputLength: MAX_LOG_BYTES })
  } catch {
    return undefined
  }
}
