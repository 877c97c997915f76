// Remote stores for tests, in the real server's bucket.

import { setTimeout as delay } from 'node:timers/promises'
import type { ObjectStore } from '../../src/store/remote/objects.ts'
import { openRemoteStore, type RemoteOptions, type RemoteStore } from '../../src/store/remote/store.ts'
import { parseS3Address } from '../../src/store/s3/address.ts'
import { openS3Objects } from '../../src/store/s3/objects.ts'
import type { S3Server } from './s3-server.ts'

let count = 0

export interface TestRemote {
  readonly store: RemoteStore
  readonly warnings: string[]
}

/** @param options `endpoint`: of a proxy; `prefix`: another store's, to meet there; fresh by default */
export async function openTestRemote(
  server: S3Server,
  {
    endpoint,
    prefix = `store-${count++}`,
    idleMs = 15_000,
    ...options
  }: Partial<RemoteOptions> & {
    readonly endpoint?: string
    readonly prefix?: string
    readonly idleMs?: number
  } = {},
): Promise<TestRemote> {
  const warnings: string[] = []
  const address = parseS3Address(server.address(prefix, endpoint))
  const objects = await openS3Objects({ address, idleMs, attempts: 3 })
  const store = openRemoteStore({
    objects,
    holder: 'run 1 on test',
    beatMs: 5_000,
    isWritable: true,
    onWarning: (_code, message) => warnings.push(message),
    ...options,
  })
  return { store, warnings }
}

/** Keys of the objects below a prefix. */
export async function keysBelow(objects: ObjectStore, prefix: string): Promise<string[]> {
  return (await Array.fromAsync(objects.list(prefix))).map(({ key }) => key)
}

/** Changes one bit of an object where it rests. @param at from its end where negative; in the middle by default */
export async function flipBit(objects: ObjectStore, key: string, at?: number): Promise<void> {
  const object = await objects.get(key)
  if (!object) throw new Error(`no ${key}`)
  const { bytes } = object
  const index = at === undefined ? bytes.length >> 1 : at < 0 ? bytes.length + at : at
  bytes[index] = (bytes[index] ?? 0) ^ 0x10
  await objects.put(key, bytes)
}

/** Resolves when the server's clock, which counts seconds, has left the one it is in: gc without grace takes only what is
 *  older than its own second. */
export async function untilNextSecond(objects: ObjectStore): Promise<void> {
  const tick = async (): Promise<number> => {
    await objects.put('tick', Buffer.of(0))
    return (await objects.head('tick'))?.modifiedMs ?? 0
  }
  const first = await tick()
  while ((await tick()) === first) await delay(50)
}
