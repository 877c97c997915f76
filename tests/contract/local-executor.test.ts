// What every stage may rely on when its command runs on this machine: real processes, real signals.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { openLocalExecutor } from '../../src/execute/local.ts'
import { createJob, runJob, type TestJob } from '../rig/job.ts'

const warnings: string[] = []
const executor = openLocalExecutor({ onWarning: (code) => warnings.push(code), graceMs: 300 })
afterAll(() => executor[Symbol.asyncDispose]())

test('a command that exits 0 has no failure, and its use is measured over the whole process tree', async () => {
  const burn =
    'const x = Buffer.alloc(60_000_000, 1); while (process.cpuUsage().user < 400_000); setTimeout(() => x, 400)'
  using job = createJob(`"${process.execPath}" -e '${burn}' & wait; echo done`)

  const { failure, usage, isolation } = await runJob(executor, job)

  expect(failure).toBeUndefined()
  expect(isolation).toBe('workdir')
  expect(usage.method).toBe('sampled')
  expect(usage.cpuMs).toBeGreaterThan(200)
  expect(usage.peakMemoryBytes).toBeGreaterThan(60_000_000)
})

test.each([
  ['exit 3', { class: 'stage', exitCode: 3 }],
  ['exit 75', { class: 'preempted', exitCode: 75 }],
  ['kill -SEGV $$', { class: 'signal', signal: 'SIGSEGV' }],
])('%s is told apart', async (sh, expected) => {
  using job = createJob(sh)

  const { failure } = await runJob(executor, job)

  expect(failure).toMatchObject(expected)
})

test.each([
  [['no-such-program-here'], 'the command "no-such-program-here" was not found on PATH'],
  [['./missing'], 'the command "./missing" does not exist, or its interpreter does not'],
])('%j cannot be started: the stage is to blame, in words', async (argv, message) => {
  using job = createJob('', { argv })

  const { failure } = await runJob(executor, job)

  expect(failure).toEqual({ class: 'stage', message })
})

test('a command past its time is ended, with all it started', async () => {
  using job = createJob('sleep 60 & echo $! > out/pid; setsid sleep 60 & echo $! >> out/pid; wait', {
    timeoutMs: 400,
  })

  const { failure } = await runJob(executor, job)

  expect(failure).toMatchObject({ class: 'timeout', message: 'it ran longer than its 400 ms' })
  expect(livingPids(job)).toEqual([])
})

test('TERM lets a stage save its state; what ignores it is killed after the grace', async () => {
  using polite = createJob(
    'trap "echo saved > out/state; exit 0" TERM; echo up; while :; do sleep 0.05; done',
  )
  using deaf = createJob('trap "" TERM; echo up; while :; do sleep 0.05; done')
  const handles = [await executor.submit(polite.job), await executor.submit(deaf.job)]
  await until(() => polite.lines.length > 0 && deaf.lines.length > 0)

  for (const handle of handles) executor.cancel(handle, 'term')
  const outcomes = await Promise.all(handles.map((handle) => executor.wait(handle)))

  expect(outcomes.map(({ failure }) => failure?.class)).toEqual(['cancelled', 'cancelled'])
  expect(readFileSync(polite.path('out/state'), 'utf8')).toBe('saved\n')
})

test('what a stage leaves running is ended with it: detached, in its own session, without its environment', async () => {
  using job = createJob(`
    sleep 60 & echo $! > out/pid
    setsid sh -c 'echo $$ >> out/pid; exec sleep 60' &
    env -i PATH="$PATH" setsid sh -c 'echo $$ >> out/pid; cd /; exec sleep 60' &
    while [ "$(wc -l < out/pid)" -lt 3 ]; do sleep 0.01; done`)

  const { failure } = await runJob(executor, job)

  expect(failure).toBeUndefined()
  expect(livingPids(job)).toEqual([])
})

test('only what is given is in the environment', async () => {
  using job = createJob('env | cut -d= -f1 | sort > out/env')

  await runJob(executor, job)

  const names = readFileSync(job.path('out/env'), 'utf8').trim().split('\n')
  expect(names.filter((name) => !['PWD', 'OLDPWD', '_', 'SHLVL'].includes(name))).toEqual([
    'HOME',
    'PATH',
    'PILOT_ACTION',
    'TMPDIR',
  ])
})

test('both streams are logged in order, with times, and a shell may open /dev/stderr again', async () => {
  using job = createJob(
    'echo one; sleep 0.05; echo two >&2; sleep 0.05; echo three > /dev/stderr; printf four',
  )

  const { log } = await runJob(executor, job)

  expect(job.lines).toEqual(['stdout one', 'stderr two', 'stderr three', 'stdout four'])
  const lines = job.log().trim().split('\n')
  expect(lines.map((line) => line.replace(/^\S+ /, ''))).toEqual([
    'out| one',
    'err| two',
    'err| three',
    'out| four',
  ])
  for (const line of lines) expect(line).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z /)
  expect(log).toMatchObject({ droppedLines: 0 })
})

test('a stage that prints nothing has no log file', async () => {
  using job = createJob(':')

  const { log } = await runJob(executor, job)

  expect(log).toBeNull()
  expect(existsSync(job.job.logPath)).toBe(false)
})

test('a flood of output is kept as head and tail, and the stage is not slowed to a stop', async () => {
  using job = createJob('seq 1 3000000')

  const { failure, log } = await runJob(executor, job)

  const text = job.log()
  expect(failure).toBeUndefined()
  expect(log?.droppedLines).toBeGreaterThan(0)
  expect(text.length).toBeLessThan(64 * 2 ** 20)
  expect(text).toMatch(/out\| 1\n/)
  expect(text.trimEnd()).toMatch(/out\| 3000000$/)
})

test('jobs beside each other do not end each other', async () => {
  using short = createJob('setsid sleep 60 & exit 0')
  using long = createJob('sleep 0.5; setsid sh -c "sleep 0.2; echo alive > out/late" & wait')

  const outcomes = await Promise.all([runJob(executor, short), runJob(executor, long)])

  expect(outcomes.map(({ failure }) => failure)).toEqual([undefined, undefined])
  expect(readFileSync(long.path('out/late'), 'utf8')).toBe('alive\n')
})

test('a guard that is killed is an infrastructure failure of its jobs, which leave nothing, and the next job runs', async () => {
  using job = createJob('echo $$ > out/pid; setsid sh -c "echo \\$\\$ >> out/pid; exec sleep 60" & sleep 60')
  const handle = await executor.submit(job.job)
  await until(() => existsSync(job.path('out/pid')) && readPids(job).length === 2)
  const [leader = 0] = readPids(job)
  process.kill(parentOf(leader), 'SIGKILL')

  const { failure } = await executor.wait(handle)
  using next = createJob('echo fine > out/next')
  const after = await runJob(executor, next)

  expect(failure).toMatchObject({ class: 'infra' })
  expect(livingPids(job)).toEqual([])
  expect(after.failure).toBeUndefined()
})

test('no warning was given in all of this', () => {
  expect(warnings).toEqual([])
})

function readPids(job: TestJob): number[] {
  return readFileSync(job.path('out/pid'), 'utf8').trim().split('\n').map(Number)
}

function livingPids(job: TestJob): number[] {
  return readPids(job).filter((pid) => readdirSync('/proc').includes(String(pid)) && !isZombie(pid))
}

function statOf(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function isZombie(pid: number): boolean {
  return statOf(pid)[0] === 'Z'
}

function parentOf(pid: number): number {
  return Number(statOf(pid)[1])
}

async function until(isTrue: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error('it did not come true within 20 s')
    await delay(10)
  }
}
