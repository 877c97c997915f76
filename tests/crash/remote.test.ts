// kill -9 at random moments of push, pull and gc, and gc beside restoring runs: only hits or misses, right bytes, and a
// repeated command finishes what was cut. PILOT_LONG=1 takes 200 moments; else a few.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createProject, removeAll, type TestProject } from '../rig/project.ts'
import { type S3Server, startS3Server } from '../rig/s3-server.ts'
import { shellPipeline } from '../rig/shell-pipeline.ts'

const LONG = process.env['PILOT_LONG'] === '1'
const KILLS = LONG ? 200 : 9
const ROUNDS = LONG ? 25 : 4

let server: S3Server
beforeAll(async () => {
  server = await startS3Server()
})
afterAll(() => server[Symbol.asyncDispose]())

/** A large output, and one that many small ones are joined to; the seed decides the bytes. */
const PIPELINE = shellPipeline({
  large: {
    sh: 'head -c 6000000 /dev/zero | tr "\\0" "$(head -c 1 "$a")" > "$out"; cat "$a" >> "$out"',
    inputs: { a: 'data/seed' },
  },
  small: { sh: 'sha256sum < "$a" > "$out"', inputs: { a: 'large' } },
})

function expected(seed: string): string {
  const bytes = Buffer.concat([Buffer.alloc(6_000_000, seed.slice(0, 1)), Buffer.from(seed)])
  return `${createHash('sha256').update(bytes).digest('hex')}  -\n`
}

function machine(prefix: string): TestProject & { readonly env: Readonly<Record<string, string>> } {
  const project = createProject({ 'pipeline.ts': PIPELINE, 'data/seed': 'a\n' })
  return Object.assign(project, { env: { PILOT_STORE: server.address(prefix) } })
}

test(`after each of ${KILLS} kills of push, pull and gc the command finishes when repeated`, async () => {
  using one = machine('kills')
  using two = machine('kills')
  const { env } = one
  let tookMs = 600
  for (let round = 0; round < KILLS; round++) {
    const seed = `${String.fromCharCode(97 + (round % 26))}${round}\n`
    for (const each of [one, two]) each.write({ 'data/seed': seed })
    await one.run([])
    if (round % 3 !== 0) await one.pilot(['push'], { env })
    const [victim, argv] = (
      [
        [one, ['push']],
        [two, ['pull']],
        [one, ['gc', '--remote', '--grace', '0', '--keep-runs', '1']],
      ] as const
    )[round % 3] ?? [one, ['push']]

    const killed = victim.start(argv, { env })
    await Promise.race([delay(Math.random() * tookMs), killed.finished])
    killed.process.kill('SIGKILL')
    await killed.finished
    const began = performance.now()
    const again = await victim.pilot(argv, { env })
    tookMs = Math.max(300, 1.2 * (performance.now() - began))
    await one.pilot(['push'], { env })
    const pulled = await two.pilot(['pull'], { env })
    const ran = await two.run([], { env })

    const told = `round ${round}, ${argv.join(' ')}`
    expect(again.code, `${told}\n${again.stderr}${again.stdout}`).toBe(0)
    expect(pulled.code, `${told}\n${pulled.stderr}${pulled.stdout}`).toBe(0)
    expect(ran.end, told).toMatchObject({ exit: 0, executed: 0 })
    expect(readFileSync(two.path('artifacts/latest/small/out'), 'utf8'), told).toBe(expected(seed))
  }
  for (const each of [one, two]) expect((await each.pilot(['verify'])).code).toBe(0)
  const beyond = await one.pilot(['verify', '--remote'], { env })
  expect(beyond.code, beyond.stdout + beyond.stderr).toBe(0)
}, 3_000_000)

test('gc without grace beside restoring runs: only hits and misses, and right bytes', async () => {
  using one = machine('races')
  using two = machine('races')
  const { env } = one
  const isDone = new AbortController()
  const collecting = (async () => {
    let rounds = 0
    while (!isDone.signal.aborted) {
      const collected = await one.pilot(['gc', '--remote', '--grace', '0', '--keep-runs', '1'], { env })
      expect(collected.code, collected.stderr).toBe(0)
      rounds++
    }
    return rounds
  })()
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const seed = `${String.fromCharCode(97 + (round % 3))}\n`
      two.write({ 'data/seed': seed })
      const ran = await two.run([], { env })
      expect(ran.end.exit, ran.stdout).toBe(0)
      expect(two.read('artifacts/latest/small/out')).toBe(expected(seed))
      removeAll(two.path('artifacts'))
    }
  } finally {
    isDone.abort()
  }
  expect(await collecting).toBeGreaterThan(0)
  const healed = await one.pilot(['verify', '--remote', '--heal'], { env })
  const clean = await one.pilot(['verify', '--remote'], { env })
  expect(healed.code, healed.stdout).toBe(0)
  expect(clean.code, clean.stdout + clean.stderr).toBe(0)
}, 3_000_000)
