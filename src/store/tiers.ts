// The tiers beyond this machine, as one: read through in order, written behind by a bounded queue, never the reason
// that a run fails. A read that fails is a miss and a write that fails is a warning, both said once for each cause.

import type { Digest } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import type { LocalStore, Store } from '../model/ports.ts'
import type { ActionResult } from '../model/result.ts'
import { sizeOf } from '../model/tree.ts'
import { toDiskError } from './local/disk.ts'
import type { Lease, LeaseAnswer, Leases } from './remote/leases.ts'
import { RemoteError } from './remote/objects.ts'

/** A store of a tier. What only some of them can do is optional. */
export interface Tier extends Store {
  readonly leases?: Leases
  publish?(
    result: ActionResult,
    options: { readonly replace: boolean; readonly fence: number },
  ): Promise<void>
  putRoot?(name: string, root: unknown): Promise<void>
}

export interface Tiers {
  readonly name: string
  readonly isWritable: boolean
  /** Look-ups ask here and not this machine's store. */
  readonly isOnly: boolean
  /** What is kept of an action; its outputs are fetched when they are needed. */
  find(key: Digest): Promise<ActionResult | undefined>
  /** Path of the tree in the local store, brought there where it is not yet. Undefined where no tier has it whole:
   *  then `find` gives no result that names it any more. */
  fetch(tree: Digest): Promise<string | undefined>
  fetchLog(digest: Digest): Promise<Buffer | undefined>
  /** `none`: nothing here knows leases, or the store does not answer. */
  claim(key: Digest): Promise<LeaseAnswer | { readonly type: 'none' }>
  readonly beatMs: number
  /** Sends a result, its tree and its log; the lease ends when they are there. Waits only while the queue is full. */
  send(result: ActionResult, options: SendOptions): Promise<void>
  /** Waits for what is being sent; with the signal aborted, only for what is on its way. @returns results not sent */
  drain(signal: AbortSignal): Promise<number>
  /** Writes down what gc must keep. */
  putRoot(name: string, root: unknown): Promise<void>
}

export interface SendOptions {
  readonly replace: boolean
  readonly lease: Lease | undefined
}

export interface TiersOptions {
  readonly local: LocalStore
  /** Asked in this order. */
  readonly readers: readonly Tier[]
  /** Where results go; none in read-only mode. */
  readonly writer: Tier | undefined
  readonly isOnly: boolean
  readonly onWarning: (code: string, message: string) => void
  /** Bytes moved so far and in all, of everything that was asked for. */
  readonly onProgress?: ((what: string, doneBytes: number, totalBytes: number) => void) | undefined
}

/** Results waiting to be sent, at most: a stage that ends then waits for one of them. */
const QUEUE_LENGTH = 32

/** Each failure comes after retries with their waits; a tier that fails so often is left out of the run. */
const PATIENCE = 3

export function openTiers({ local, readers, writer, isOnly, onWarning, onProgress }: TiersOptions): Tiers {
  const name = (writer ?? readers[0])?.name ?? 'none'
  /** Tiers that will not answer in this run. */
  const shut = new Set<Tier>()
  const failures = new Map<Tier, number>()
  const said = new Set<string>()
  /** Results by the tree they name, with where they were found. */
  const found = new Map<Digest, { readonly tier: Tier; readonly results: Set<ActionResult> }>()
  /** Trees that came damaged, and the actions whose entries name them: replaced by what is made anew. */
  const lost = new Set<Digest>()
  const broken = new Set<Digest>()
  const fetching = new Map<Digest, Promise<string | undefined>>()
  const queue: (() => Promise<void>)[] = []
  let working: Promise<void> | undefined
  let isAbandoned = false
  let unsent = 0
  const waiters: (() => void)[] = []

  /** What a tier answers; undefined, with a warning, where it cannot. What this machine's disk refuses is thrown. */
  async function ask<T>(tier: Tier, verb: string, act: () => Promise<T>): Promise<T | undefined> {
    if (shut.has(tier)) return undefined
    try {
      return await act()
    } catch (raw) {
      const error = toDiskError(raw, local.root)
      // Executing the producer instead would need the same room.
      if (error instanceof PilotError && error.code === 'disk-full') throw error
      const failed = (failures.get(tier) ?? 0) + 1
      failures.set(tier, failed)
      const isLasting = (error instanceof RemoteError && error.isLasting) || failed >= PATIENCE
      if (isLasting) shut.add(tier)
      const reason = error instanceof RemoteError ? error.reason : 'failed'
      if (!said.has(`${tier.name} ${reason}`)) {
        said.add(`${tier.name} ${reason}`)
        const rest = isLasting ? ', and is left out of this run' : ''
        onWarning(`remote-${reason}`, `${tier.name} cannot ${verb}${rest}: ${textOf(error)}`)
      }
      return undefined
    }
  }

  async function find(key: Digest): Promise<ActionResult | undefined> {
    if (broken.has(key)) return undefined
    for (const tier of readers) {
      const result = await ask(tier, 'be read', () => tier.getResult(key))
      if (!result || lost.has(result.tree)) continue
      const known = found.get(result.tree)
      if (known) known.results.add(result)
      else found.set(result.tree, { tier, results: new Set([result]) })
      local.noteResult(result)
      return result
    }
    return undefined
  }

  async function fetchNow(tree: Digest): Promise<string | undefined> {
    const standing = local.openTree(tree)
    if (standing !== undefined) return adopt(tree, standing)
    const first = found.get(tree)?.tier
    for (const tier of first ? [first, ...readers.filter((other) => other !== first)] : readers) {
      const into = `${local.makeTemp('fetch')}/tree`
      const fetched = await ask(tier, 'be read', () => tier.fetchTree(tree, into))
      if (fetched) return adopt(tree, local.adoptTree(fetched, into))
    }
    lost.add(tree)
    for (const result of found.get(tree)?.results ?? []) broken.add(result.actionDigest)
    return undefined
  }

  /** With its tree here, a result is a hit from now on. */
  async function adopt(tree: Digest, path: string): Promise<string> {
    for (const result of found.get(tree)?.results ?? []) await local.putResult(result, { replace: true })
    return path
  }

  function fetch(tree: Digest): Promise<string | undefined> {
    const running = fetching.get(tree) ?? fetchNow(tree).finally(() => fetching.delete(tree))
    fetching.set(tree, running)
    return running
  }

  async function sendNow(tier: Tier, result: ActionResult, { replace, lease }: SendOptions): Promise<void> {
    const tree = local.readTree(result.tree)
    const folder = local.openTree(result.tree)
    const isSent = await ask(tier, 'be written', async () => {
      if (!tree || folder === undefined) throw new Error(`tree ${result.tree} is gone from this machine`)
      if (!shut.has(tier)) onProgress?.('sending', 0, sizeOf(tree.entries))
      await tier.sendTree(tree, folder)
      const log = result.record.log && (await local.getLog(result.record.log.digest))
      if (result.record.log && log) await tier.putLog(result.record.log.digest, log)
      const options = { replace: replace || broken.has(result.actionDigest), fence: lease?.fence ?? 0 }
      await (tier.publish ? tier.publish(result, options) : tier.putResult(result, options))
      return true
    })
    if (!isSent) unsent++
  }

  async function work(): Promise<void> {
    for (let next = queue.shift(); next; next = queue.shift()) {
      if (isAbandoned) unsent++
      else await next()
      waiters.shift()?.()
    }
    working = undefined
  }

  return {
    name,
    isWritable: writer !== undefined,
    isOnly,
    beatMs: writer?.leases?.beatMs ?? 0,
    find,
    fetch,
    async fetchLog(digest) {
      for (const tier of readers) {
        const text = await ask(tier, 'be read', () => tier.getLog(digest))
        if (!text) continue
        await local.putLog(digest, text)
        return text
      }
      return undefined
    },
    async claim(key) {
      const leases = writer?.leases
      if (!writer || !leases) return { type: 'none' }
      return (await ask(writer, 'lease an action', () => leases.claim(key))) ?? { type: 'none' }
    },
    async send(result, options) {
      if (!writer) return
      while (queue.length >= QUEUE_LENGTH) await new Promise<void>((resolve) => waiters.push(resolve))
      queue.push(async () => {
        try {
          await sendNow(writer, result, options)
        } finally {
          await ask(writer, 'end a lease', async () => options.lease?.release())
        }
      })
      working ??= work()
    },
    async drain(signal) {
      const abandon = (): void => {
        isAbandoned = true
      }
      if (signal.aborted) abandon()
      signal.addEventListener('abort', abandon)
      await working
      signal.removeEventListener('abort', abandon)
      return unsent
    },
    async putRoot(root, value) {
      if (writer) await ask(writer, 'be written', async () => writer.putRoot?.(root, value))
    },
  }
}

function textOf(error: unknown): string {
  if (error instanceof RemoteError) return `${error.message}; ${error.hint}`
  return error instanceof Error ? error.message : String(error)
}
