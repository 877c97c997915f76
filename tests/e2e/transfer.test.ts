// push, pull, verify, gc, cache, export, import: looking after the store beyond this machine, by its commands.

import { generateKeyPairSync } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AC, BLOBS, TREES } from '../../src/store/remote/keys.ts'
import type { ObjectStore } from '../../src/store/remote/objects.ts'
import { createProject, removeAll } from '../rig/project.ts'
import { type S3Server, startS3Server } from '../rig/s3-server.ts'
import { openTestRemote } from '../rig/s3-store.ts'
import { shellPipeline } from '../rig/shell-pipeline.ts'

let server: S3Server
beforeAll(async () => {
  server = await startS3Server()
})
afterAll(() => server[Symbol.asyncDispose]())

const TWO = shellPipeline({
  big: { sh: 'head -c 6000000 /dev/urandom > "$out"' },
  small: { sh: 'echo small; wc -c < "$a" > "$out"', inputs: { a: 'big' } },
})

let count = 0
function machine(prefix: string, pipeline = TWO, env: Readonly<Record<string, string>> = {}) {
  const project = createProject({ 'pipeline.ts': pipeline })
  const options = { env: { PILOT_STORE: server.address(prefix), ...env } }
  return Object.assign(project, {
    remote: (...argv: string[]) => project.pilot(argv, options),
    runRemote: (...argv: string[]) => project.run(argv, options),
  })
}
const fresh = () => `transfer-${count++}`
const objectsOf = async (prefix: string): Promise<ObjectStore> =>
  (await openTestRemote(server, { prefix })).store.objects

test('what was made without the store is pushed, and pulled elsewhere; again, nothing moves', async () => {
  const prefix = fresh()
  using one = machine(prefix)
  using two = machine(prefix)
  await one.run([])

  const pushed = await one.remote('push', '--json')
  const again = await one.remote('push')
  const pulled = await two.remote('pull', '--json')
  const ran = await two.runRemote()

  expect(JSON.parse(pushed.stdout)).toMatchObject({ type: 'push', there: 2, unsent: 0 })
  expect(again).toMatchObject({ code: 0 })
  expect(JSON.parse(pulled.stdout)).toMatchObject({ type: 'pull', here: 2, pulled: 2, missing: [] })
  expect(ran.outcomes).toEqual({ big: 'hit', small: 'hit' })
  expect(readFileSync(two.path('artifacts/latest/big/out'))).toEqual(
    readFileSync(one.path('artifacts/latest/big/out')),
  )
})

test('pull says what is not there', async () => {
  using one = machine(fresh())

  const pulled = await one.remote('pull')

  expect(pulled.code).toBe(3)
  expect(pulled.stdout).toContain('not there, or waiting on one that is not: big, small')
})

test('verify --remote finds damage, --heal sends it again from here', async () => {
  const prefix = fresh()
  using one = machine(prefix)
  await one.runRemote()
  const objects = await objectsOf(prefix)
  const [blob = ''] = await keysBelow(objects, BLOBS)
  await flip(objects, blob)

  const found = await one.remote('verify', '--remote')
  const healed = await one.remote('verify', '--remote', '--heal')
  const clean = await one.remote('verify', '--remote')

  expect(found.code).toBe(3)
  expect(found.stdout).toContain(`damaged  ${blob}`)
  expect(healed.stdout).toMatch(/healed +tree/)
  expect(clean).toMatchObject({ code: 0, stdout: expect.stringContaining('all intact: 2 results') })
})

test('what cannot be healed is dropped, and its producer runs again', async () => {
  const prefix = fresh()
  using one = machine(prefix)
  using two = machine(prefix)
  await one.runRemote()
  const objects = await objectsOf(prefix)
  for (const blob of await keysBelow(objects, BLOBS)) await flip(objects, blob)
  removeAll(one.path('artifacts'))

  const healed = await one.remote('verify', '--remote', '--heal')
  const ran = await two.runRemote()

  expect(healed.stdout).toMatch(/dropped +result/)
  expect(ran.outcomes['big']).toBe('executed')
})

test('gc --remote deletes what no root needs, says so before, and leaves the rest whole', async () => {
  const prefix = fresh()
  using one = machine(prefix)
  await one.runRemote()
  await one.runRemote('--force', 'big')
  const objects = await objectsOf(prefix)
  const before = await keysBelow(objects, 'v1/')

  const dry = await one.remote('gc', '--remote', '--dry-run', '--grace', '0', '--keep-runs', '1')
  const untouched = await keysBelow(objects, 'v1/')
  const real = await one.remote('gc', '--remote', '--grace', '0', '--keep-runs', '1')
  const verified = await one.remote('verify', '--remote')
  removeAll(one.path('artifacts'))
  const restored = await one.runRemote()

  expect(dry.stdout).toMatch(/would be deleted +unreachable (tree|content)/)
  expect(untouched).toEqual(before)
  expect(real.code).toBe(0)
  expect(await keysBelow(objects, BLOBS)).toHaveLength(1)
  expect(verified.stdout).toContain('all intact')
  expect(restored.end).toMatchObject({ executed: 0 })
})

test('what is pinned outlives every gc until it is unpinned', async () => {
  const prefix = fresh()
  using one = machine(prefix)
  await one.runRemote()
  await one.remote('pin', 'kept', 'big')
  const objects = await objectsOf(prefix)
  await objects.remove((await keysBelow(objects, 'v1/roots/')).filter((key) => key.includes('/run-')))
  const collect = () => one.remote('gc', '--remote', '--grace', '0')

  await collect()
  const pinned = await keysBelow(objects, AC)
  await one.remote('unpin', 'kept')
  await collect()

  expect(pinned).toHaveLength(1)
  expect(await keysBelow(objects, AC)).toEqual([])
  expect(await keysBelow(objects, TREES)).toEqual([])
})

test('what is younger than the grace stays', async () => {
  const prefix = fresh()
  using one = machine(prefix)
  await one.runRemote()
  const objects = await objectsOf(prefix)
  await objects.remove(await keysBelow(objects, 'v1/roots/'))

  await one.remote('gc', '--remote')

  expect(await keysBelow(objects, AC)).toHaveLength(2)
})

test('cache ls and explain tell what is there and whether it is used', async () => {
  const prefix = fresh()
  using one = machine(prefix)
  await one.runRemote()
  const objects = await objectsOf(prefix)

  const listed = await one.remote('cache', 'ls', '--json')
  const rows = listed.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const key: string = rows.find((row) => row.stage === 'big').key
  const used = await one.remote('cache', 'explain', key.slice(0, 10))
  await objects.remove(await keysBelow(objects, BLOBS))
  const broken = await one.remote('cache', 'explain', key)

  expect(rows.map((row) => row.stage).sort()).toEqual(['big', 'small'])
  expect(used.stdout).toMatch(/used +yes/)
  expect(broken.stdout).toMatch(/used +no: its outputs are not all there/)
})

test('only results signed by a listed key are used; others are a miss that is told', async () => {
  const prefix = fresh()
  const [ci, stranger] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')]
  const publicKey = ci.publicKey.export({ type: 'spki', format: 'pem' })
  const policy = JSON.stringify({
    schema: 'pilot.trust.v1',
    signers: [{ name: 'ci', publicKey, builder: 'urn:ci' }],
  })
  const signing = (pair: typeof ci) => ({
    PILOT_SIGNING_KEY: 'key.pem',
    pem: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }),
  })
  const one = (pair: typeof ci | undefined, builder: string) => {
    const project = machine(prefix, TWO, {
      ...(pair && { PILOT_SIGNING_KEY: 'key.pem' }),
      PILOT_BUILDER: builder,
    })
    if (pair) project.write({ 'key.pem': String(signing(pair).pem) })
    return project
  }
  using unsigned = one(undefined, 'urn:ci')
  using foreign = one(stranger, 'urn:ci')
  using other = one(ci, 'urn:laptop')
  using good = one(ci, 'urn:ci')
  using reader = machine(prefix)
  reader.write({ 'pilot.trust.json': policy })
  const outcomes: string[] = []
  const told: string[] = []
  for (const writer of [unsigned, foreign, other, good]) {
    await writer.runRemote('--only', 'big', '--force', 'big')
    const ran = await reader.runRemote('--to', 'big', '--read-only')
    outcomes.push(ran.outcomes['big'] ?? '')
    for (const event of ran.events) if (event.type === 'warning') told.push(event.message)
    removeAll(reader.path('artifacts'))
  }

  expect(outcomes).toEqual(['executed', 'executed', 'executed', 'restored'])
  expect(told[0]).toMatch(/stage "big" .* is not used: it is not signed/)
  expect(told.join('\n')).toMatch(/signed by nobody the policy lists/)
  expect(told.join('\n')).toMatch(/as builder urn:laptop, and the policy names urn:ci/)
})

test('an export is one file of the same bytes, taken in without a network', async () => {
  using one = machine(fresh())
  using two = createProject({ 'pipeline.ts': TWO })
  await one.run([])

  const made = await one.pilot(['export', 'a.tar.zst'])
  await one.pilot(['export', 'b.tar.zst'])
  const taken = await two.pilot(['import', one.path('a.tar.zst')])
  const ran = await two.run([])

  expect(made.code).toBe(0)
  expect(readFileSync(one.path('a.tar.zst'))).toEqual(readFileSync(one.path('b.tar.zst')))
  expect(taken.stdout).toContain('2 results taken in')
  expect(ran.outcomes).toEqual({ big: 'hit', small: 'hit' })
})

test('a bundle that was cut or altered is refused, and what was kept stays', async () => {
  using one = machine(fresh())
  using two = createProject({ 'pipeline.ts': TWO })
  await one.run([])
  await one.pilot(['export', 'a.tar.zst'])
  const bytes = readFileSync(one.path('a.tar.zst'))
  one.write({ 'cut.tar.zst': '', 'flipped.tar.zst': '' })
  const { writeFileSync } = await import('node:fs')
  writeFileSync(one.path('cut.tar.zst'), bytes.subarray(0, bytes.length / 2))
  const flipped = Buffer.from(bytes)
  flipped[flipped.length >> 1] = (flipped[flipped.length >> 1] ?? 0) ^ 1
  writeFileSync(one.path('flipped.tar.zst'), flipped)

  for (const name of ['cut.tar.zst', 'flipped.tar.zst']) {
    const taken = await two.pilot(['import', one.path(name)])
    expect(taken.code).toBe(2)
    expect(taken.stderr).toMatch(/error\[invalid-bundle\]/)
  }
  expect((await two.pilot(['verify'])).code).toBe(0)
  expect(existsSync(two.path('artifacts/latest/big'))).toBe(false)
})

async function keysBelow(objects: ObjectStore, prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const { key } of objects.list(prefix)) keys.push(key)
  return keys
}

async function flip(objects: ObjectStore, key: string): Promise<void> {
  const object = await objects.get(key)
  if (!object) throw new Error(`no ${key}`)
  const at = object.bytes.length >> 1
  object.bytes[at] = (object.bytes[at] ?? 0) ^ 0x10
  await objects.put(key, object.bytes)
}
