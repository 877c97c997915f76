// What every stage may rely on when its command runs on this machine: real processes, real signals.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { LocalOptions } from '../../src/execute/local.ts'
import type { Executor, Job } from '../../src/model/ports.ts'
import type { Isolation } from '../../src/model/stage.ts'
import { createJob, runJob, type TestJob } from '../rig/job.ts'
import { until } from '../rig/until.ts'

export interface Subject {
  /** Called once, before the first test. */
  readonly open: (options: LocalOptions) => Promise<Executor>
  /** What its jobs have besides. */
  readonly fields: () => Partial<Job>
  readonly isolation: Isolation
  /** Variables that a job finds without having been given them. */
  readonly adds: readonly string[]
}

const OF_THE_SHELL = ['PWD', 'OLDPWD', '_', 'SHLVL']

export function executorContract(subject: Subject): void {
  const warnings: string[] = []
  let opened: Executor | undefined
  beforeAll(async () => {
    opened = await subject.open({ onWarning: (code) => warnings.push(code), graceMs: 300 })
  }, 60_000)
  afterAll(() => opened?.[Symbol.asyncDispose]())

  const executor = (): Executor => {
    if (!opened) throw new Error('no executor is open')
    return opened
  }
  const setUp = (sh: string, fields: Partial<Job> = {}): TestJob =>
    createJob(sh, { ...subject.fields(), ...fields })

  test('a command that exits 0 has no failure, and its use is measured over the whole process tree', async () => {
    // 64 MiB in one string, some work, and long enough at rest to be seen.
    const burn =
      'BEGIN { s = "x"; while (length(s) < 6e7) s = s s; for (i = 0; i < 6e6; i++) n += i; system("sleep 0.6") }'
    using job = setUp(`awk '${burn}' & wait; echo done`)

    const { failure, usage, isolation } = await runJob(executor(), job)

    expect(failure).toBeUndefined()
    expect(isolation).toBe(subject.isolation)
    expect(usage.method).toBe('sampled')
    expect(usage.cpuMs).toBeGreaterThan(50)
    expect(usage.peakMemoryBytes).toBeGreaterThan(60_000_000)
  })

  test.each([
    ['exit 3', { class: 'stage', exitCode: 3 }],
    ['exit 75', { class: 'preempted', exitCode: 75 }],
    ['kill -SEGV $$', { class: 'signal', signal: 'SIGSEGV' }],
  ])('%s is told apart', async (sh, expected) => {
    using job = setUp(sh)

    const { failure } = await runJob(executor(), job)

    expect(failure).toMatchObject(expected)
  })

  test.each([
    [['no-such-program-here'], 'the command "no-such-program-here" was not found on PATH'],
    [['./missing'], 'the command "./missing" does not exist, or its interpreter does not'],
  ])('%j cannot be started: the stage is to blame, in words', async (argv, message) => {
    using job = setUp('', { argv })

    const { failure } = await runJob(executor(), job)

    expect(failure).toEqual({ class: 'stage', message })
  })

  test('a command past its time is ended, with all it started', async () => {
    const nap = newNap()
    using job = setUp(`sleep ${nap} & setsid sleep ${nap} & wait`, { timeoutMs: 1_500 })

    const { failure } = await runJob(executor(), job)

    expect(failure).toMatchObject({ class: 'timeout', message: 'it ran longer than its 1.5 s' })
    expect(sleepers(nap)).toEqual([])
  })

  test('TERM lets a stage save its state; what ignores it is killed after the grace', async () => {
    using polite = setUp('trap "echo saved > out/state; exit 0" TERM; echo up; while :; do sleep 0.05; done')
    using deaf = setUp('trap "" TERM; echo up; while :; do sleep 0.05; done')
    const handles = [await executor().submit(polite.job), await executor().submit(deaf.job)]
    await until(() => polite.lines.length > 0 && deaf.lines.length > 0)

    for (const handle of handles) executor().cancel(handle, 'term')
    const outcomes = await Promise.all(handles.map((handle) => executor().wait(handle)))

    expect(outcomes.map(({ failure }) => failure?.class)).toEqual(['cancelled', 'cancelled'])
    expect(readFileSync(polite.path('out/state'), 'utf8')).toBe('saved\n')
  })

  test('what a stage leaves running is ended with it: detached, in its own session, without its environment', async () => {
    const nap = newNap()
    using job = setUp(`
      sleep ${nap} & echo $! > out/pid
      setsid sh -c 'echo $$ >> out/pid; exec sleep ${nap}' &
      env -i PATH="$PATH" setsid sh -c 'echo $$ >> out/pid; cd /; exec sleep ${nap}' &
      while [ "$(wc -l < out/pid)" -lt 3 ]; do sleep 0.01; done`)

    const { failure } = await runJob(executor(), job)

    expect(failure).toBeUndefined()
    expect(sleepers(nap)).toEqual([])
  })

  test('only what is given is in the environment', async () => {
    using job = setUp('env | cut -d= -f1 | sort > out/env')

    await runJob(executor(), job)

    const names = readFileSync(job.path('out/env'), 'utf8').trim().split('\n')
    expect(names.filter((name) => ![...OF_THE_SHELL, ...subject.adds].includes(name))).toEqual([
      'HOME',
      'PATH',
      'PILOT_ACTION',
      'TMPDIR',
    ])
  })

  test('both streams are logged in order, with times, and a shell may open /dev/stderr again', async () => {
    using job = setUp('echo one; sleep 0.05; echo two >&2; sleep 0.05; echo three > /dev/stderr; printf four')

    const { log } = await runJob(executor(), job)

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
    using job = setUp(':')

    const { log } = await runJob(executor(), job)

    expect(log).toBeNull()
    expect(existsSync(job.job.logPath)).toBe(false)
  })

  test('a flood of output is kept as head and tail, and the stage is not slowed to a stop', async () => {
    using job = setUp('seq 1 3000000')

    const { failure, log } = await runJob(executor(), job)

    const text = job.log()
    expect(failure).toBeUndefined()
    expect(log?.droppedLines).toBeGreaterThan(0)
    expect(text.length).toBeLessThan(64 * 2 ** 20)
    expect(text).toMatch(/out\| 1\n/)
    expect(text.trimEnd()).toMatch(/out\| 3000000$/)
  })

  test('jobs beside each other do not end each other', async () => {
    using short = setUp(`setsid sleep ${newNap()} & exit 0`)
    using long = setUp('sleep 0.5; setsid sh -c "sleep 0.2; echo alive > out/late" & wait')

    const outcomes = await Promise.all([runJob(executor(), short), runJob(executor(), long)])

    expect(outcomes.map(({ failure }) => failure)).toEqual([undefined, undefined])
    expect(readFileSync(long.path('out/late'), 'utf8')).toBe('alive\n')
  })

  test('a guard that is killed is an infrastructure failure of its jobs, which leave nothing, and the next job runs', async () => {
    const nap = newNap()
    using job = setUp(`setsid sleep ${nap} & sleep ${nap}`)
    const handle = await executor().submit(job.job)
    await until(() => sleepers(nap).length === 2)
    for (const pid of guards()) process.kill(pid, 'SIGKILL')

    const { failure } = await executor().wait(handle)
    using next = setUp('echo fine > out/next')
    const after = await runJob(executor(), next)

    expect(failure).toMatchObject({ class: 'infra' })
    expect(sleepers(nap)).toEqual([])
    expect(after.failure).toBeUndefined()
  })

  test('no warning was given in all of this', () => {
    expect(warnings).toEqual([])
  })
}

/** A number of seconds that nothing else on this machine sleeps: processes are told by it, whatever their pids are
 *  where they run. */
function newNap(): number {
  return 1_000_000 + Math.floor(Math.random() * 1e9)
}

function sleepers(seconds: number): readonly number[] {
  return pidsOf((words, pid) => words[0] === 'sleep' && words[1] === String(seconds) && !isZombie(pid))
}

/** Guards of executors in this process. */
function guards(): readonly number[] {
  return pidsOf((words, pid) => /guard-main/.test(words.join(' ')) && Number(statOf(pid)[1]) === process.pid)
}

function pidsOf(isWanted: (words: readonly string[], pid: number) => boolean): readonly number[] {
  const pids = readdirSync('/proc').flatMap((name) => Number(name) || [])
  return pids.filter((pid) => {
    try {
      return isWanted(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0'), pid)
    } catch {
      // Gone meanwhile.
      return false
    }
  })
}

function statOf(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function isZombie(pid: number): boolean {
  return statOf(pid)[0] === 'Z'
}
