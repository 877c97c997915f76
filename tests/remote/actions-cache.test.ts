// The store contract over a real cache service of GitHub Actions, and what only this store promises.

import { execFile } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { hashTree } from '../../src/capture/tree.ts'
import { digestOf } from '../../src/model/digest.ts'
import type { Store } from '../../src/model/ports.ts'
import { openActionsCacheStore } from '../../src/store/actions-cache/store.ts'
import { storeContract } from '../contract/store.contract.ts'
import { type CacheService, startCacheService } from '../rig/actions-cache-v2.ts'
import { sampleResult } from '../rig/sample-result.ts'
import { createScratch, type Scratch } from '../rig/scratch.ts'

const JOB = fileURLToPath(new URL('../rig/actions-cache-job.ts', import.meta.url))

let service: CacheService
beforeAll(async () => {
  service = await startCacheService()
})
afterAll(() => service[Symbol.asyncDispose]())
// As a new repository: nothing is left of the tests before.
beforeEach(() => {
  service.entries.length = 0
})

storeContract('actions-cache', (root) => {
  mkdirSync(root)
  const { store } = openIn(root)
  return { store, damage: () => changeAll(flip) }
})

test('a tree keeps what an archive of another user would lose: closed files, odd names, links to folders', async () => {
  using scratch = createScratch()
  const { store } = openIn(scratch.root)
  scratch.write('tree/line\nbreak and “quotes”', 'odd')
  scratch.write('tree/-rf', 'a switch')
  scratch.write('tree/closed/secret', 'read by me alone', 0o400)
  scratch.write('tree/closed/twice', 'read by me alone', 0o755)
  scratch.write('tree/large', Buffer.alloc(3 << 20, 'large'))
  symlinkSync('closed', scratch.path('tree/to-folder'))
  symlinkSync('nowhere', scratch.path('tree/dangling'))
  chmodSync(scratch.path('tree/closed'), 0o500)
  const tree = await hashTree(scratch.path('tree'))

  await store.sendTree(tree, scratch.path('tree'))
  await store.fetchTree(tree.digest, scratch.path('back'))

  expect((await hashTree(scratch.path('back'))).digest).toBe(tree.digest)
  expect(readlinkSync(scratch.path('back/dangling'))).toBe('nowhere')
})

test.each<[string, (bytes: Buffer) => Buffer]>([
  ['is cut short', (bytes) => bytes.subarray(0, bytes.length >> 1)],
  ['has a flipped bit', flip],
  ['is empty', () => Buffer.alloc(0)],
  ['unpacks to other bytes', (bytes) => zstdCompressSync(toOther(zstdDecompressSync(bytes)))],
  ['is no archive', () => Buffer.from('<html>try again later</html>')],
])('an archive that %s is a miss, leaves nothing behind and gives way', async (_, change) => {
  using scratch = createScratch()
  const { store, warnings } = openIn(scratch.path())
  const { tree, result } = await sendSample(store, scratch)
  await changeAll(change)

  const damaged = await store.getResult(result.actionDigest)
  const fetched = await store.fetchTree(tree.digest, scratch.path('back'))
  const left = readdirSync(scratch.root)
  await sendSample(store, scratch)
  const healed = await openIn(scratch.root).store.getResult(result.actionDigest)

  expect([damaged, fetched]).toEqual([undefined, undefined])
  expect(left).toEqual(['sample'])
  expect(warnings.filter((warning) => !/is not (used|what)/.test(warning))).toEqual([])
  expect(warnings).toHaveLength(2)
  expect(healed).toEqual(result)
})

test('an archive that the service has evicted behind its entry is a miss and gives way', async () => {
  using scratch = createScratch()
  const { store } = openIn(scratch.root)
  const { tree, result } = await sendSample(store, scratch)
  for (const entry of service.entries) await service.evict(entry)

  expect(await store.getResult(result.actionDigest)).toBeUndefined()
  expect(await store.fetchTree(tree.digest, scratch.path('back'))).toBeUndefined()
  await sendSample(store, scratch)
  expect(await store.getResult(result.actionDigest)).toEqual(result)
})

test('whole archives under names that are not theirs are not used', async () => {
  using scratch = createScratch()
  const { store } = openIn(scratch.root)
  const { tree, result, log } = await sendSample(store, scratch)
  const other = digestOf('another')
  for (const entry of service.entries) {
    for (const digest of [tree.digest, result.actionDigest, digestOf(log)])
      entry.key = entry.key.replace(digest, other)
  }

  expect(await store.getResult(other)).toBeUndefined()
  expect(await store.fetchTree(other, scratch.path('back'))).toBeUndefined()
  expect(await store.getLog(other)).toBeUndefined()
  expect(existsSync(scratch.path('back'))).toBe(false)
})

test('a result whose tree was evicted is no result, and a new one takes its place', async () => {
  using scratch = createScratch()
  const { store } = openIn(scratch.root)
  const { result } = await sendSample(store, scratch)
  service.entries.splice(0, service.entries.length, ...service.entries.filter(({ key }) => !isTree(key)))
  const { tree: second } = await sampleTree(scratch, 'second')

  const before = await store.getResult(result.actionDigest)
  await store.sendTree(second, scratch.path('second'))
  const anew = sampleResult({ tree: second })
  await store.putResult(anew, { replace: false })

  expect(before).toBeUndefined()
  expect(await store.getResult(result.actionDigest)).toEqual(anew)
})

test('two that send the same at the same time do not disturb each other', async () => {
  using scratch = createScratch()
  const { tree, folder } = await sampleTree(scratch, 'sample')
  const stores = [openIn(scratch.root), openIn(scratch.root)]
  await Promise.all(stores.map(({ store }) => store.sendTree(tree, folder)))

  await Promise.all(stores.map(({ store }) => store.putResult(sampleResult({ tree }), { replace: false })))

  expect(stores.map(({ warnings }) => warnings)).toEqual([[], []])
  expect(await stores[0]?.store.getResult(sampleResult({ tree }).actionDigest)).toEqual(
    sampleResult({ tree }),
  )
})

test('a place that a dead job reserved and never filled does not stay empty', async () => {
  using scratch = createScratch()
  const { store } = openIn(scratch.root)
  const { tree, result } = await sendSample(store, scratch)
  for (const entry of service.entries) entry.isComplete = false

  const before = await store.hasTree(tree.digest)
  await sendSample(store, scratch)

  expect(before).toBe(false)
  expect(await store.getResult(result.actionDigest)).toEqual(result)
})

test('a tree that is not what was hashed is not sent', async () => {
  using scratch = createScratch()
  const { store } = openIn(scratch.root)
  const { tree, folder } = await sampleTree(scratch, 'sample')
  writeFileSync(join(folder, 'out'), 'written to later')

  await expect(store.sendTree(tree, folder)).rejects.toThrow('"out" is not what was hashed')
  expect(service.entries).toEqual([])
})

test('a job that may only read goes on, and is told once', async () => {
  using scratch = createScratch()
  const { store, warnings } = openIn(scratch.root, { ACTIONS_CACHE_MODE: 'read' })

  await sendSample(store, scratch)

  expect(service.entries).toEqual([])
  expect(warnings).toEqual([expect.stringContaining("mode 'read' does not permit writes")])
})

test('a wrong token is told apart from a miss, and never repeated', async () => {
  using scratch = createScratch()
  const { store } = openIn(scratch.root, { ACTIONS_RUNTIME_TOKEN: 'not-the-token' })

  const failed = await store.getResult(digestOf('any')).catch((error: unknown) => error)

  expect(failed).toMatchObject({ name: 'RemoteError', reason: 'forbidden' })
  expect(String(failed)).not.toContain('not-the-token')
})

test('a service that is not there is told apart from a miss', async () => {
  using scratch = createScratch()
  const { store } = openIn(scratch.root, { ACTIONS_RESULTS_URL: 'http://127.0.0.1:9/' })

  await expect(store.getResult(digestOf('any'))).rejects.toMatchObject({ reason: 'unreachable' })
  await expect(sendSample(store, scratch)).rejects.toMatchObject({ reason: 'unreachable' })
})

test('a folder whose path a shell would take apart does no harm', async () => {
  using scratch = createScratch()
  mkdirSync(scratch.path('with "spaces" and $HOME'))
  const { store } = openIn(scratch.path('with "spaces" and $HOME'))

  const { result } = await sendSample(store, scratch)

  expect(await store.getResult(result.actionDigest)).toEqual(result)
})

test('without zstd it says so, and what was packed with it is a miss', async () => {
  using scratch = createScratch()
  mkdirSync(scratch.path('bin'))
  for (const name of ['tar', 'gzip', 'sh']) symlinkSync(which(name), scratch.path('bin', name))
  const { result } = await sendSample(openIn(scratch.root).store, scratch)
  const bare = openIn(scratch.root, { PATH: scratch.path('bin') })

  const packedWithZstd = await bare.store.getResult(result.actionDigest)
  await sendSample(bare.store, scratch)

  expect(packedWithZstd).toBeUndefined()
  expect(await bare.store.getResult(result.actionDigest)).toEqual(result)
  expect(bare.warnings).toEqual([expect.stringContaining('zstd is not on PATH')])
})

test.each([
  [{ ACTIONS_RUNTIME_TOKEN: undefined }, 'ACTIONS_RUNTIME_TOKEN is not set'],
  [
    { ACTIONS_RUNTIME_TOKEN: '', ACTIONS_RESULTS_URL: undefined },
    'ACTIONS_RESULTS_URL and ACTIONS_RUNTIME_TOKEN are not set',
  ],
  [{ ACTIONS_CACHE_SERVICE_V2: undefined }, 'ACTIONS_CACHE_URL is not set'],
])('without the variables of a runner it does not open: %j', (without, words) => {
  expect(() => openIn('/nonexistent', without)).toThrow(
    expect.objectContaining({
      code: 'actions-cache-unavailable',
      blame: 'environment',
      message: `there is no GitHub Actions cache here: ${words}`,
      hint: expect.stringContaining('uses: ./.github/actions/pilot'),
    }),
  )
})

test('a process that used it ends by itself, and nothing of the library is on its stdout', async () => {
  using scratch = createScratch()
  const { tree, folder } = await sampleTree(scratch, 'sample')

  const sent = await job(['send', folder, scratch.path('tmp')])
  const fetched = await job(['fetch', scratch.path('back'), scratch.path('tmp')])

  expect(sent).toEqual({ stdout: `sent ${tree.digest}\n`, stderr: '' })
  expect(fetched).toEqual({ stdout: `fetched ${tree.digest}\n`, stderr: '' })
  expect(readFileSync(scratch.path('back/out'), 'utf8')).toBe('sample')
})

function openIn(tempRoot: string, more: Readonly<Record<string, string | undefined>> = {}) {
  const warnings: string[] = []
  const environment = { ...process.env, ...service.environment, ...more }
  const store = openActionsCacheStore({
    tempRoot,
    environment,
    onWarning: (message) => warnings.push(message),
  })
  return { store, warnings }
}

async function sampleTree(scratch: Scratch, name: string) {
  const folder = scratch.path(name)
  if (!existsSync(folder)) scratch.write(`${name}/out`, name)
  return { folder, tree: await hashTree(folder) }
}

/** In write order, as a run does it. */
async function sendSample(store: Store, scratch: Scratch) {
  const { tree, folder } = await sampleTree(scratch, 'sample')
  const log = Buffer.from('2026-01-01T00:00:00.000Z out| done\n')
  const result = sampleResult({ tree })
  await store.sendTree(tree, folder)
  await store.putLog(digestOf(log), log)
  await store.putResult(result, { replace: false })
  return { tree, result, log }
}

async function changeAll(change: (bytes: Buffer) => Buffer): Promise<void> {
  for (const entry of service.entries) await service.change(entry, change)
}

function flip(bytes: Buffer): Buffer {
  const at = bytes.length >> 1
  bytes[at] = (bytes[at] ?? 0) ^ 0x10
  return bytes
}

/** tar keeps no checksum of what is in its files. */
function toOther(archive: Buffer): Buffer {
  return Buffer.from(archive.toString('latin1').replaceAll('sample', 'simple'), 'latin1')
}

const isTree = (key: string): boolean => key.includes('-tree-')

function which(name: string): string {
  const folder = (process.env['PATH'] ?? '')
    .split(delimiter)
    .find((candidate) => existsSync(join(candidate, name)))
  return realpathSync(join(folder ?? '', name))
}

function job(argv: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const env = { ...process.env, ...service.environment }
  return new Promise((resolve) => {
    execFile(process.execPath, [JOB, ...argv], { env, timeout: 60_000 }, (_, stdout, stderr) =>
      resolve({ stdout, stderr }),
    )
  })
}
