import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { openLocalStore } from '../../src/store/local.ts'
import { openMemoryStore } from '../../src/store/memory.ts'
import { storeContract } from './store.contract.ts'

storeContract('memory', () => {
  const store = openMemoryStore()
  return {
    store,
    damage: (tree, path) => {
      const entry = tree.entries.find((candidate) => candidate.path === path)
      if (entry?.type !== 'file') throw new Error(`${path} is no file of the tree`)
      store.blobs.set(entry.digest, flipFirst(store.blobs.get(entry.digest) ?? Buffer.alloc(1)))
    },
  }
})

storeContract('local', (root) => {
  const store = openLocalStore({
    root,
    runId: '20260101-000000-0000',
    host: 'test',
    onDamage: () => undefined,
  })
  return {
    store,
    damage: (tree, path) => {
      const file = `${root}/trees/${tree.digest}/${path}`
      chmodSync(file, 0o600)
      writeFileSync(file, flipFirst(readFileSync(file)))
    },
  }
})

function flipFirst(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  copy[0] = (copy[0] ?? 0) ^ 1
  return copy
}
