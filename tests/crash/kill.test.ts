// kill -9 at random moments of a run: the next run finishes with the right bytes and no manual step, and no process of
// a stage lives on, not even one that called setsid and cleared its environment.
// PILOT_LONG=1 takes 200 moments; else a few.

import { createHash, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createProject } from '../rig/project.ts'
import { shellPipeline } from '../rig/shell-pipeline.ts'

const LONG = process.env['PILOT_LONG'] === '1'
const KILLS = LONG ? 200 : 10
const LIVES_ON_MS = 2_000
const LAYERS = 4
const WIDTH = 3
const LINES = 2_000

test(`after each of ${KILLS} kills the next run finishes with the right bytes, and nothing lives on`, async () => {
  const token = randomUUID()
  using project = createProject({ 'pipeline.ts': pipelineText(token) })
  let longestMs = 1_000
  for (let round = 0; round < KILLS; round++) {
    const seed = `${round}\n`
    project.write({ 'data/seed': seed })
    const began = performance.now()
    const killed = project.start(['run', '--json', '-j', '3'])
    await Promise.race([delay(Math.random() * longestMs), killed.finished])
    killed.process.kill('SIGKILL')
    await killed.finished
    const left = await livingAfter(token, LIVES_ON_MS)

    const again = await project.run(['-j', '3'])

    const told = `round ${round}, killed after ${Math.round(performance.now() - began)} ms`
    expect(left, told).toEqual([])
    expect(again.code, `${told}\n${again.stderr}${again.stdout}`).toBe(0)
    for (let i = 0; i < LAYERS * WIDTH; i++) {
      expect(project.read(`artifacts/latest/work-${i}/out`), told).toBe(outputOf(i, seed))
    }
    longestMs = Math.max(500, again.end.wallMs * 1.3)
  }
  const verified = await project.pilot(['verify'])
  expect(verified.code, verified.stdout + verified.stderr).toBe(0)
  expect(readdirSync(project.path('artifacts/tmp'))).toEqual([])
}, 1_800_000)

test('a stage that ends leaves none of its processes behind either', async () => {
  const token = randomUUID()
  using project = createProject({ 'pipeline.ts': pipelineText(token), 'data/seed': 'x\n' })

  const ran = await project.run()

  expect(ran.code).toBe(0)
  expect(processesWith(token)).toEqual([])
})

/** Layers of stages; each digests what the layer above wrote, and tries to leave a process behind in its own way. */
function pipelineText(token: string): string {
  const escapes = [
    `sh -c 'sleep 1000; : ${token}' & `,
    `setsid sh -c 'sleep 1000; : ${token}' & `,
    `setsid env -i PATH="$PATH" sh -c 'cd /; sleep 1000; : ${token}' & `,
  ]
  const work = (i: number) =>
    `${escapes[i % escapes.length]} sleep 0.05; sha256sum < "$from" > "$out"; i=0; while [ $i -lt ${LINES} ]; do echo "${i} $i"; i=$((i+1)); done >> "$out"; cat "$from" >> "$out"`
  const stages = Array.from({ length: LAYERS * WIDTH }, (_, i) => {
    const from = i < WIDTH ? 'data/seed' : `work-${i - WIDTH}`
    return [`work-${i}`, { sh: work(i), inputs: { from } }] as const
  })
  return shellPipeline(Object.fromEntries(stages))
}

/** What stage `i` must write: worked out here, apart from the stages' shell. */
function outputOf(i: number, seed: string): string {
  const from = i < WIDTH ? seed : outputOf(i - WIDTH, seed)
  const lines = Array.from({ length: LINES }, (_, line) => `${i} ${line}\n`)
  return `${createHash('sha256').update(from).digest('hex')}  -\n${lines.join('')}${from}`
}

/** Command lines that still hold the token when the time is over; returns at once when none does. */
async function livingAfter(token: string, ms: number): Promise<readonly string[]> {
  const deadline = performance.now() + ms
  for (;;) {
    const living = processesWith(token)
    if (living.length === 0 || performance.now() > deadline) return living
    await delay(20)
  }
}

function processesWith(token: string): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => `${pid} ${commandOf(pid)}`)
    .filter((line) => line.includes(token))
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}
