// Two machines and one bucket: what one made the other has, once, and never a wrong byte.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { zstdDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AC, PACKS } from '../../src/store/remote/keys.ts'
import { startBadProxy } from '../rig/bad-proxy.ts'
import { createProject, removeAll } from '../rig/project.ts'
import { type S3Server, startS3Server } from '../rig/s3-server.ts'
import { openTestRemote } from '../rig/s3-store.ts'
import { shellPipeline } from '../rig/shell-pipeline.ts'

let server: S3Server
beforeAll(async () => {
  server = await startS3Server()
})
afterAll(() => server[Symbol.asyncDispose]())

const CHAIN = {
  prepare: { sh: 'echo prepared | tee "$out"' },
  train: { sh: 'head -c 5000000 /dev/zero > "$out"; cat "$a" >> "$out"', inputs: { a: 'prepare' } },
  evaluate: { sh: 'wc -c < "$a" > "$out"', inputs: { a: 'train' } },
}

let count = 0
/** A machine of its own, on a store. */
function machine(pipeline: string, prefix: string, env: Readonly<Record<string, string>> = {}) {
  const project = createProject({ 'pipeline.ts': pipeline })
  const options = { env: { PILOT_STORE: server.address(prefix), ...env } }
  return Object.assign(project, {
    remote: (argv: readonly string[] = []) => project.run(argv, options),
    options,
  })
}
const fresh = () => `e2e-${count++}`

test('without artifacts/ nothing is executed again, and only what is asked for is downloaded', async () => {
  using one = machine(shellPipeline(CHAIN), fresh())
  const first = await one.remote()
  removeAll(one.path('artifacts'))

  const planned = await one.pilot(['plan', '--json'], one.options)
  const again = await one.remote(['--to', 'evaluate'])

  expect(first.outcomes).toEqual({ prepare: 'executed', train: 'executed', evaluate: 'executed' })
  expect(planned.stdout.match(/"state":"restore"/g)).toHaveLength(3)
  expect(again.outcomes).toEqual({ prepare: 'restored', train: 'restored', evaluate: 'restored' })
  expect(readFileSync(one.path('artifacts/latest/evaluate/out'), 'utf8').trim()).toBe('5000009')
  expect(readdirSync(one.path('artifacts/trees'))).toHaveLength(1)
})

test('the outputs and the log of a restored stage come when they are asked for', async () => {
  const prefix = fresh()
  using one = machine(shellPipeline(CHAIN), prefix)
  using two = machine(shellPipeline(CHAIN), prefix)
  await one.remote()
  await two.remote(['--to', 'evaluate'])

  const out = await two.pilot(['out', 'prepare'], two.options)
  const log = await two.pilot(['log', 'prepare'], two.options)

  expect(out.stdout.trim()).toBe('artifacts/latest/prepare/out')
  expect(two.read('artifacts/latest/prepare/out')).toBe('prepared\n')
  expect(log.stdout).toContain('prepared')
})

test('a failed run is resumed on another machine from what the first one stored', async () => {
  const prefix = fresh()
  const broken = { ...CHAIN, evaluate: { sh: 'exit 7', inputs: { a: 'train' } } }
  using one = machine(shellPipeline(broken), prefix)
  using two = machine(shellPipeline(CHAIN), prefix)

  const failed = await one.remote()
  const resumed = await two.remote()

  expect(failed.outcomes).toEqual({ prepare: 'executed', train: 'executed', evaluate: 'failed' })
  expect(resumed.outcomes).toEqual({ prepare: 'restored', train: 'restored', evaluate: 'executed' })
})

describe('leases', () => {
  const SLOW = {
    slow: {
      sh: 'echo start >> "$MEET/starts"; sleep 1; echo done > "$out"',
      more: "env: { pass: ['MEET'] },",
    },
  }

  test('two machines that start together run each stage once', async () => {
    const prefix = fresh()
    using one = machine(shellPipeline(SLOW), prefix)
    using two = machine(shellPipeline(SLOW), prefix)

    const runs = await Promise.all([one.remote(), two.remote()])

    expect(runs.map((run) => run.end.exit)).toEqual([0, 0])
    expect(runs.map((run) => run.outcomes['slow']).sort()).toEqual(['executed', 'restored'])
    const waiter = runs.find((run) => run.outcomes['slow'] === 'restored')
    expect(waiter?.events.find((event) => event.type === 'stage-wait')).toMatchObject({
      holder: expect.stringMatching(/^run \S+ on \S+, since \d{4}-/),
    })
  })

  test('the work of a machine that was killed is taken over after three beats', async () => {
    const prefix = fresh()
    const hang = {
      slow: { ...SLOW.slow, sh: 'if [ -e "$MEET/hang" ]; then sleep 600; fi; echo done > "$out"' },
    }
    using one = machine(shellPipeline(hang), prefix, { PILOT_LEASE_BEAT_MS: '300' })
    using two = machine(shellPipeline(hang), prefix, { PILOT_LEASE_BEAT_MS: '300' })
    one.write({ hang: '' })
    const holder = one.start(['run', '--json'], one.options)
    await holder.line(/stage-start/)
    const waiter = two.start(['run', '--json'], two.options)
    await waiter.line(/stage-wait/)

    const killed = performance.now()
    holder.process.kill('SIGKILL')
    await waiter.line(/stage-start/)
    const tookMs = performance.now() - killed
    const end = await waiter.finished

    expect(end.code).toBe(0)
    expect(end.stdout).toContain('"outcome":"executed"')
    // Three beats, one during which it died, one to look again.
    expect(tookMs).toBeLessThan(5 * 300 + 1_000)
  })
})

describe('damage', () => {
  test('a pack that is gone makes its producer run again, and the next machine hits', async () => {
    const prefix = fresh()
    using one = machine(shellPipeline(CHAIN), prefix)
    using two = machine(shellPipeline(CHAIN), prefix)
    using three = machine(shellPipeline(CHAIN), prefix)
    await one.remote()
    const { store } = await openTestRemote(server, { prefix })
    const [victim] = await keysBelow(store.objects.list(PACKS))
    await store.objects.remove([victim ?? ''])

    const healed = await two.remote()
    const after = await three.remote()

    expect(healed.end).toMatchObject({ exit: 0, executed: 1, restored: 2 })
    expect(after.end).toMatchObject({ exit: 0, executed: 0, restored: 3 })
  })

  test('a flipped byte found on the way in sends the run back to the producer alone', async () => {
    const prefix = fresh()
    using one = machine(shellPipeline(CHAIN), prefix)
    using two = machine(
      shellPipeline({ ...CHAIN, more: { sh: 'cat "$a" > "$out"', inputs: { a: 'prepare' } } }),
      prefix,
    )
    using three = machine(shellPipeline(CHAIN), prefix)
    await one.remote()
    const { store } = await openTestRemote(server, { prefix })
    for (const key of await keysBelow(store.objects.list(PACKS))) {
      const object = await store.objects.get(key)
      if (!object) throw new Error(key)
      object.bytes[object.bytes.length - 1] = (object.bytes.at(-1) ?? 0) ^ 1
      await store.objects.put(key, object.bytes)
    }

    const healed = await two.remote(['--to', 'more'])
    const after = await three.remote(['--to', 'prepare'])

    expect(healed.end).toMatchObject({ exit: 0, executed: 2 })
    expect(healed.events.filter((event) => event.type === 'stage-lost')).toMatchObject([{ stage: 'prepare' }])
    expect(two.read('artifacts/latest/more/out')).toBe('prepared\n')
    expect(after.outcomes).toEqual({ prepare: 'restored' })
    expect(three.read('artifacts/latest/prepare/out')).toBe('prepared\n')
    expect(await keysBelow(store.objects.list('v1/quarantine/'))).not.toEqual([])
  })

  test('--force replaces a poisoned result for everyone, and the old one is kept aside', async () => {
    const prefix = fresh()
    const poison = { roll: { sh: 'cat "$MEET/value" > "$out"', more: "env: { pass: ['MEET'] }," } }
    using one = machine(shellPipeline(poison), prefix)
    using two = machine(shellPipeline(poison), prefix)
    one.write({ value: 'poisoned' })
    await one.remote()
    one.write({ value: 'good' })

    const forced = await one.remote(['--force', 'roll'])
    const other = await two.remote()

    expect(forced.outcomes).toEqual({ roll: 'executed' })
    expect(other.outcomes).toEqual({ roll: 'restored' })
    expect(two.read('artifacts/latest/roll/out')).toBe('good')
    const { store } = await openTestRemote(server, { prefix })
    expect(await keysBelow(store.objects.list('v1/quarantine/'))).toHaveLength(1)
  })
})

describe('a store that does not answer', () => {
  const causes = [
    ['refuses', { type: 'status', status: 403 }, /access is refused/],
    [
      'has no such bucket',
      {
        type: 'status',
        status: 404,
        body: '<Error><Code>NoSuchBucket</Code><Message>gone</Message></Error>',
      },
      /there is no bucket "pilot"/,
    ],
    [
      'is elsewhere',
      {
        type: 'status',
        status: 301,
        body: '<Error><Code>PermanentRedirect</Code><Message>eu</Message></Error>',
      },
      /in another region/,
    ],
    [
      'has another clock',
      {
        type: 'status',
        status: 403,
        body: '<Error><Code>RequestTimeTooSkewed</Code><Message>late</Message></Error>',
      },
      /the clock of this machine differs/,
    ],
    ['is busy', { type: 'status', status: 429, headers: { 'retry-after': '0' } }, /fewer requests/],
    ['is broken', { type: 'status', status: 500 }, /answers with an error/],
  ] as const
  for (const [what, fault, words] of causes) {
    test(`${what}: a warning that says so, and the run goes on`, async () => {
      await using proxy = await startBadProxy(server.endpoint)
      proxy.fault = () => fault
      using one = createProject({ 'pipeline.ts': shellPipeline({ a: { sh: 'echo a > "$out"' } }) })

      const ran = await one.run([], { env: { PILOT_STORE: server.address(fresh(), proxy.endpoint) } })

      expect(ran.end).toMatchObject({ exit: 0, executed: 1 })
      expect(ran.events.filter((event) => event.type === 'warning').map((event) => event.message)).toEqual(
        expect.arrayContaining([expect.stringMatching(words)]),
      )
    })
  }

  test('missing credentials end the command before anything runs', async () => {
    using one = createProject({ 'pipeline.ts': shellPipeline({ a: { sh: 'echo a > "$out"' } }) })
    const env = { AWS_ACCESS_KEY_ID: undefined, AWS_SECRET_ACCESS_KEY: undefined, HOME: one.root }

    const ran = await one.pilot(['run'], { env: { ...env, PILOT_STORE: server.address(fresh()) } })

    expect(ran.code).toBe(3)
    expect(ran.stderr).toMatch(/error\[no-credentials\].*hint +set AWS_ACCESS_KEY_ID/s)
    expect(existsSync(one.path('artifacts/latest/a'))).toBe(false)
  })
})

test('untrusted runs read both namespaces; trusted ones never what an untrusted one wrote', async () => {
  const prefix = fresh()
  const both = shellPipeline({ base: { sh: 'echo base > "$out"' }, extra: { sh: 'echo extra > "$out"' } })
  using main = machine(both, prefix)
  using pull = machine(both, prefix, { PILOT_TRUST: 'untrusted' })
  using other = machine(both, prefix, { PILOT_TRUST: 'untrusted' })
  await main.remote(['--only', 'base'])

  const pulled = await pull.remote()
  const seen = await other.remote()
  removeAll(main.path('artifacts'))
  const trusted = await main.remote()

  expect(pulled.outcomes).toEqual({ base: 'restored', extra: 'executed' })
  expect(seen.outcomes).toEqual({ base: 'restored', extra: 'restored' })
  expect(trusted.outcomes).toEqual({ base: 'restored', extra: 'executed' })
})

test('--no-remote and --read-only write nothing; --remote-only asks nothing here', async () => {
  const prefix = fresh()
  using one = machine(shellPipeline({ a: { sh: 'echo a > "$out"' } }), prefix)
  const { store } = await openTestRemote(server, { prefix })
  await one.remote(['--no-remote'])
  await one.remote(['--read-only', '--force', 'a'])

  const before = await keysBelow(store.objects.list('v1/'))
  const only = await one.remote(['--remote-only'])

  expect(before).toEqual([])
  expect(only.outcomes).toEqual({ a: 'executed' })
  expect(await keysBelow(store.objects.list(AC))).toHaveLength(1)
})

test('a secret is in no object of the bucket: not plain, not in base64, split, in argv or in a file name', async () => {
  const prefix = fresh()
  const secret = 'hunter2-correct-horse'
  const encoded = Buffer.from(secret).toString('base64')
  const leak = {
    leak: {
      sh: 'echo "$TOKEN"; printf %s "$TOKEN" | base64; printf hunter2-; printf "correct-horse\\n"; echo "x $TOKEN" >&2; echo ok > "$out"',
      more: "env: { secrets: ['TOKEN'] }",
    },
  }
  using one = machine(shellPipeline(leak), prefix, { TOKEN: secret })
  const ran = await one.remote()
  const { store } = await openTestRemote(server, { prefix })

  const texts: string[] = []
  for (const key of await keysBelow(store.objects.list(''))) {
    const bytes = (await store.objects.get(key))?.bytes ?? Buffer.alloc(0)
    texts.push(key, bytes.toString('latin1'))
    if (key.startsWith('v1/logs/')) texts.push(zstdDecompressSync(bytes).toString('latin1'))
    if (key.startsWith('v1/packs/') && bytes[0] === 1)
      texts.push(zstdDecompressSync(bytes.subarray(1)).toString('latin1'))
    if (key.startsWith('v1/trees/')) texts.push(zstdDecompressSync(bytes).toString('latin1'))
  }

  expect(ran.outcomes).toEqual({ leak: 'executed' })
  expect(texts.some((text) => text.includes('***'))).toBe(true)
  for (const text of texts) {
    expect(text).not.toContain(secret)
    expect(text).not.toContain(encoded)
  }
})

async function keysBelow(list: AsyncIterable<{ readonly key: string }>): Promise<string[]> {
  const keys: string[] = []
  for await (const { key } of list) keys.push(key)
  return keys
}
