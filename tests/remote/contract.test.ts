// The store contract over a real S3 server, and what only a remote store promises.

import { afterAll, beforeAll } from 'vitest'
import { BLOBS, PACKS } from '../../src/store/remote/keys.ts'
import type { ObjectStore } from '../../src/store/remote/objects.ts'
import { storeContract } from '../contract/store.contract.ts'
import { type S3Server, startS3Server } from '../rig/s3-server.ts'
import { openTestRemote } from '../rig/s3-store.ts'

let server: S3Server
beforeAll(async () => {
  server = await startS3Server()
})
afterAll(() => server[Symbol.asyncDispose]())

storeContract('s3', async () => {
  const { store } = await openTestRemote(server)
  return { store, damage: () => flipAll(store.objects) }
})

/** Changes one byte in the middle of every object that holds content. */
async function flipAll(objects: ObjectStore): Promise<void> {
  for (const prefix of [PACKS, BLOBS]) {
    for await (const { key } of objects.list(prefix)) {
      const object = await objects.get(key)
      if (!object) continue
      const at = object.bytes.length >> 1
      object.bytes[at] = (object.bytes[at] ?? 0) ^ 0x10
      await objects.put(key, object.bytes)
    }
  }
}
