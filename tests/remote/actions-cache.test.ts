// The store contract over a real cache service of GitHub Actions, and what only this store promises.

import { mkdirSync } from 'node:fs'
import { afterAll, beforeAll } from 'vitest'
import { openActionsCacheStore } from '../../src/store/actions-cache/store.ts'
import { storeContract } from '../contract/store.contract.ts'
import { type CacheService, startCacheService } from '../rig/actions-cache-v2.ts'

let service: CacheService
beforeAll(async () => {
  service = await startCacheService()
})
afterAll(() => service[Symbol.asyncDispose]())

storeContract('actions-cache', (root) => {
  mkdirSync(root)
  // As a new repository: nothing is left of the tests before.
  service.entries.length = 0
  const environment = { ...process.env, ...service.environment }
  const store = openActionsCacheStore({ tempRoot: root, environment, onWarning: () => undefined })
  return { store, damage: () => flipAll() }
})

/** Changes one byte in the middle of every archive. */
async function flipAll(): Promise<void> {
  for (const entry of service.entries) {
    await service.change(entry, (bytes) => {
      const at = bytes.length >> 1
      bytes[at] = (bytes[at] ?? 0) ^ 0x10
      return bytes
    })
  }
}
