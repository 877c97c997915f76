// Random damage to a remote store, at rest and in flight: what comes out is right or a miss, the bad object is set
// aside, and what is sent again is served from then on.

import { randomBytes, randomInt } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hashTree } from '../../src/capture/tree.ts'
import { digestOf } from '../../src/model/digest.ts'
import type { ActionResult } from '../../src/model/result.ts'
import type { Tree } from '../../src/model/tree.ts'
import { AC, BLOBS, LOGS, PACKS, TREES } from '../../src/store/remote/keys.ts'
import type { ObjectStore } from '../../src/store/remote/objects.ts'
import type { RemoteStore } from '../../src/store/remote/store.ts'
import { type Fault, startBadProxy } from '../rig/bad-proxy.ts'
import { type S3Server, startS3Server } from '../rig/s3-server.ts'
import { openTestRemote } from '../rig/s3-store.ts'
import { sampleResult } from '../rig/sample-result.ts'
import { createScratch, type Scratch } from '../rig/scratch.ts'

/** Of each kind; as many as are claimed in the long form. */
const CASES = process.env['PILOT_LONG'] ? 60 : 10

const LONG = { timeout: 600_000 }

let server: S3Server
let scratch: Scratch
let sample: Sample
beforeAll(async () => {
  server = await startS3Server()
  scratch = createScratch()
  sample = await makeSample('sample')
})
afterAll(async () => {
  scratch[Symbol.dispose]()
  await server[Symbol.asyncDispose]()
})

interface Sample {
  readonly tree: Tree
  readonly folder: string
  readonly result: ActionResult
  readonly log: Buffer
}

/** Small files for a pack, a large one in several parts, a log. */
async function makeSample(name: string): Promise<Sample> {
  const folder = scratch.path(name)
  mkdirSync(`${folder}/many`, { recursive: true })
  for (let i = 0; i < 20; i++) writeFileSync(`${folder}/many/${i}`, randomBytes(100 + i * 50))
  writeFileSync(`${folder}/large`, randomBytes((4 << 20) + 17))
  const tree = await hashTree(folder)
  const log = Buffer.from(`log of ${name}\n`)
  const result = sampleResult({
    tree,
    log: { digest: digestOf(log), sizeBytes: log.length, droppedLines: 0 },
  })
  return { tree, folder, result, log }
}

async function send(store: RemoteStore, { tree, folder, result, log }: Sample): Promise<void> {
  await store.sendTree(tree, folder)
  await store.putLog(digestOf(log), log)
  await store.putResult(result, { replace: true })
}

let fetches = 0
/** All that a reader gets, each held against the sample. @returns whether it was all there */
async function check(store: RemoteStore, { tree, result, log }: Sample): Promise<boolean> {
  const got = await store.getResult(result.actionDigest)
  if (got) expect(got).toEqual(result)
  const into = scratch.path(`fetch-${fetches++}`)
  const fetched = await store.fetchTree(tree.digest, into)
  if (fetched) expect((await hashTree(into)).digest).toBe(tree.digest)
  const text = await store.getLog(digestOf(log))
  if (text) expect(text).toEqual(log)
  rmSync(into, { recursive: true, force: true })
  return got !== undefined && fetched !== undefined && text !== undefined
}

const AT_REST = {
  evicted: (objects: ObjectStore, key: string) => objects.remove([key]),
  truncated: async (objects: ObjectStore, key: string) => {
    const bytes = await read(objects, key)
    await objects.put(key, bytes.subarray(0, randomInt(bytes.length)))
  },
  'bit-flipped': async (objects: ObjectStore, key: string) => {
    const bytes = await read(objects, key)
    const at = randomInt(bytes.length)
    bytes[at] = (bytes[at] ?? 0) ^ (1 << randomInt(8))
    await objects.put(key, bytes)
  },
  swapped: async (objects: ObjectStore, key: string, others: readonly string[]) => {
    await objects.copy(others[randomInt(others.length)] ?? '', key)
  },
}

test.for(Object.entries(AT_REST))(
  '%s at rest: never a wrong byte, and healed by sending again',
  LONG,
  async ([kind, damage]) => {
    const { store: writer } = await openTestRemote(server)
    const other = await makeSample(`other-${fetches++}`)
    const prefix = `damage-${fetches++}`
    const { store } = await openTestRemote(server, { prefix })
    await send(writer, other)
    for (let i = 0; i < CASES; i++) {
      await send(store, sample)
      const keys = await keysOf(store.objects)
      const victim = keys[randomInt(keys.length)] ?? ''
      await damage(
        store.objects,
        victim,
        keys.filter((key) => key !== victim),
      )

      const { store: reader, warnings } = await openTestRemote(server, { prefix })
      const wasWhole = await check(reader, sample)
      await send(reader, sample)
      const { store: later } = await openTestRemote(server, { prefix })

      // A flipped bit may be one of zstd's that mean nothing: what came out was right.
      if (kind !== 'bit-flipped') expect(wasWhole, `${victim} was damaged unseen`).toBe(false)
      if (kind !== 'evicted' && !wasWhole) expect(warnings.join('\n')).toMatch(/is set aside/)
      expect(await check(later, sample), `${victim} is not healed: ${warnings.join('\n')}`).toBe(true)
    }
  },
)

test('stale: an old result that names what is gone is a miss, and is replaced', LONG, async () => {
  const prefix = `stale-${fetches++}`
  for (let i = 0; i < CASES; i++) {
    const { store } = await openTestRemote(server, { prefix })
    await send(store, sample)
    const gone = sampleResult({ tree: { ...sample.tree, digest: digestOf(String(i)) } })
    await store.putResult({ ...gone, tree: digestOf(String(i)) }, { replace: true })

    const before = await store.getResult(sample.result.actionDigest)
    await store.putResult(sample.result, { replace: false })

    expect(before).toBeUndefined()
    expect(await check(store, sample)).toBe(true)
  }
})

const IN_FLIGHT: Readonly<Record<string, () => Fault>> = {
  'bit-flipped': () => ({ type: 'flip', at: Math.random() }),
  truncated: () => ({ type: 'truncate', at: Math.random() }),
  stalled: () => ({ type: 'stall', at: Math.random() }),
  refused: () => ({
    type: 'status',
    status: [429, 500, 503][randomInt(3)] ?? 500,
    headers: { 'retry-after': '0' },
  }),
}

test.for(Object.entries(IN_FLIGHT))(
  '%s in flight: never a wrong byte; one bad answer costs a retry',
  LONG,
  async ([, fault]) => {
    await using proxy = await startBadProxy(server.endpoint)
    const prefix = `flight-${fetches++}`
    const { store: writer } = await openTestRemote(server, { prefix })
    await send(writer, sample)
    for (let i = 0; i < CASES; i++) {
      const { store } = await openTestRemote(server, {
        prefix,
        endpoint: proxy.endpoint,
        idleMs: 100,
        isWritable: false,
      })
      let left = randomInt(8)
      proxy.fault = (method) => (method === 'GET' && left-- === 0 ? fault() : undefined)
      await check(store, sample)

      proxy.fault = () => undefined
      const { store: later } = await openTestRemote(server, { prefix, endpoint: proxy.endpoint })
      expect(await check(later, sample)).toBe(true)
    }
  },
)

async function read(objects: ObjectStore, key: string): Promise<Buffer> {
  const object = await objects.get(key)
  if (!object) throw new Error(`no ${key}`)
  return object.bytes
}

async function keysOf(objects: ObjectStore): Promise<readonly string[]> {
  const keys: string[] = []
  for (const prefix of [AC, TREES, PACKS, BLOBS, LOGS]) {
    for await (const { key } of objects.list(prefix)) keys.push(key)
  }
  return keys
}
