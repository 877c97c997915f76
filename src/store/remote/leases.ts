// One action runs once across machines: a lease is an object made where there is none, renewed by its ETag, and taken
// over when it has not changed for three beats - by the watcher's own clock, so no two clocks are ever compared.
// Losing a lease wastes work and corrupts nothing: results are by content, and the fence tells a late writer apart.

import { randomBytes } from 'node:crypto'
import * as z from 'zod'
import type { Digest } from '../../model/digest.ts'
import { LEASES } from './keys.ts'
import type { ObjectStore } from './objects.ts'

/** Beats a holder may miss. */
const MISSED_BEATS = 3

const SHAPE = z.strictObject({
  schema: z.literal('pilot.lease.v1'),
  /** For people: `run 20261201-… on host-b`. */
  holder: z.string(),
  token: z.string(),
  /** ISO 8601, UTC, by the holder's clock: for people. */
  since: z.string(),
  beatMs: z.number().positive(),
  /** Counts the beats: each renewal writes other bytes, so another ETag. */
  beat: z.int(),
  /** Grows with each holder. */
  fence: z.int().positive(),
  released: z.boolean(),
})
type LeaseText = z.infer<typeof SHAPE>

export interface Lease {
  readonly fence: number
  /** Aborted when another holder has taken over. */
  readonly lost: AbortSignal
  release(): Promise<void>
}

export type LeaseAnswer =
  | { readonly type: 'claimed'; readonly lease: Lease }
  | { readonly type: 'held'; readonly holder: string; readonly since: string }

export interface Leases {
  /** Tries once. A waiter asks again, at least once a beat. */
  claim(key: Digest): Promise<LeaseAnswer>
  readonly beatMs: number
}

export interface LeasesOptions {
  readonly objects: ObjectStore
  readonly holder: string
  readonly beatMs: number
  readonly now: () => Date
}

export function openLeases({ objects, holder, beatMs, now }: LeasesOptions): Leases {
  /** What a watched lease looked like, and when it was first seen so. */
  const watched = new Map<Digest, { readonly etag: string; readonly seenMs: number }>()

  async function claim(key: Digest): Promise<LeaseAnswer> {
    const found = await objects.get(LEASES + key)
    const old = found && parse(found.bytes)
    if (found && old && !old.released && !isAbandoned(key, found.etag, old)) {
      return { type: 'held', holder: old.holder, since: old.since }
    }
    const text: LeaseText = {
      schema: 'pilot.lease.v1',
      holder,
      token: randomBytes(8).toString('hex'),
      since: now().toISOString(),
      beatMs,
      beat: 0,
      fence: (old?.fence ?? 0) + 1,
      released: false,
    }
    const condition = found ? ({ type: 'same', etag: found.etag } as const) : ({ type: 'absent' } as const)
    const etag = await objects.put(LEASES + key, encode(text), condition)
    watched.delete(key)
    // Another was faster: who, is seen at the next try.
    if (etag === undefined) return { type: 'held', holder: 'another run', since: text.since }
    return { type: 'claimed', lease: keep(key, text, etag) }
  }

  function isAbandoned(key: Digest, etag: string, lease: LeaseText): boolean {
    const seen = watched.get(key)
    if (seen?.etag !== etag) {
      watched.set(key, { etag, seenMs: performance.now() })
      return false
    }
    return performance.now() - seen.seenMs > MISSED_BEATS * lease.beatMs
  }

  function keep(key: Digest, first: LeaseText, firstEtag: string): Lease {
    const lost = new AbortController()
    let [text, etag] = [first, firstEtag]
    let isEnded = false
    let renewing: Promise<void> = Promise.resolve()
    const write = async (next: LeaseText): Promise<void> => {
      const written = await objects.put(LEASES + key, encode(next), { type: 'same', etag })
      if (written === undefined) lost.abort()
      else [text, etag] = [next, written]
    }
    const beat = (): void => {
      renewing = renewing
        .then(() => (isEnded || lost.signal.aborted ? undefined : write({ ...text, beat: text.beat + 1 })))
        // The next beat tries again; others take over after three that failed.
        .catch(() => undefined)
    }
    const timer = setInterval(beat, beatMs)
    timer.unref()
    return {
      fence: first.fence,
      lost: lost.signal,
      async release() {
        isEnded = true
        clearInterval(timer)
        await renewing
        // Written, not deleted: a delete has no condition, and might hit the next holder's lease.
        if (!lost.signal.aborted) await write({ ...text, released: true })
      },
    }
  }

  return { claim, beatMs }
}

function encode(text: LeaseText): Buffer {
  return Buffer.from(JSON.stringify(text))
}

/** A lease that cannot be read holds nobody back. */
function parse(bytes: Buffer): LeaseText | undefined {
  try {
    return SHAPE.parse(JSON.parse(bytes.toString('utf8')))
  } catch {
    return undefined
  }
}
