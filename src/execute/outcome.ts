// From how a process ended to the failure class of its job. Pure but for the counter of the kernel's OOM killer.

import { existsSync, readFileSync } from 'node:fs'
import type { Job, JobOutcome } from '../model/ports.ts'
import type { FailureClass, Usage } from '../model/result.ts'

type JobFailure = NonNullable<JobOutcome['failure']>

/** A stage says "I was preempted: try again" by this exit code (EX_TEMPFAIL of sysexits.h). */
export const EXIT_PREEMPTED = 75
/** As shells report a child killed with SIGKILL. */
const EXIT_SIGKILL = 128 + 9

export interface Exit {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
}

export interface Circumstances {
  /** Why pilot ended the job, if it did. */
  readonly stopped: 'cancelled' | 'timeout' | undefined
  /** Asked only where a SIGKILL of unknown origin ended the job. */
  readonly isOutOfMemory: (job: Job, usage: Usage) => boolean
}

/** The failure of a job that ran, or undefined when it exited 0 of its own will. */
export function toFailure(job: Job, exit: Exit, usage: Usage, about: Circumstances): JobFailure | undefined {
  const { exitCode, signal } = exit
  const facts = { ...(exitCode !== null && { exitCode }), ...(signal && { signal }) }
  const fail = (failureClass: FailureClass, message: string): JobFailure => ({
    class: failureClass,
    message,
    ...facts,
  })
  if (about.stopped === 'timeout')
    return fail('timeout', `it ran longer than its ${formatMs(job.timeoutMs ?? 0)}`)
  if (about.stopped === 'cancelled') return fail('cancelled', 'it was stopped')
  const isKilled = signal === 'SIGKILL' || exitCode === EXIT_SIGKILL
  if (isKilled && about.isOutOfMemory(job, usage)) {
    const peak = Math.round(usage.peakMemoryBytes / 2 ** 20)
    const seen = peak > 0 ? `; the most seen in use was ${peak} MiB` : ''
    return fail('out-of-memory', `the system killed it for want of memory${seen}`)
  }
  if (signal) return fail('signal', `it was ended by ${signal}, which pilot did not send`)
  if (exitCode === 0) return undefined
  if (exitCode === EXIT_PREEMPTED)
    return fail('preempted', `it exited with ${exitCode}, which says "preempted"`)
  return fail('stage', `it exited with ${exitCode}`)
}

/** The failure of a job whose process could not be started. */
export function toStartFailure(job: Job, error: unknown): JobFailure {
  const program = job.argv[0] ?? ''
  const { code, message: text } = toCoded(error)
  if (code === 'ENOENT' && !existsSync(job.cwd)) {
    return { class: 'infra', message: `its working directory ${job.cwd} is gone` }
  }
  if (code === 'ENOENT') {
    const isPath = program.includes('/')
    const what = isPath ? 'does not exist, or its interpreter does not' : 'was not found on PATH'
    return { class: 'stage', message: `the command "${program}" ${what}` }
  }
  if (code === 'EACCES') return { class: 'stage', message: `the command "${program}" is not executable` }
  if (code === 'E2BIG')
    return { class: 'stage', message: 'its arguments and environment are too long for the system' }
  if (code === 'ERR_INVALID_ARG_VALUE')
    return { class: 'stage', message: `its command cannot be started: ${text}` }
  return { class: 'infra', message: `the command "${program}" could not be started: ${text}` }
}

/** Errors of the system have a code and a message, also those the guard tells of. */
function toCoded(error: unknown): { readonly code: string; readonly message: string } {
  if (typeof error !== 'object' || error === null) return { code: '', message: String(error) }
  const code = 'code' in error ? String(error.code) : ''
  return { code, message: 'message' in error ? String(error.message) : code }
}

/** Tells whether the kernel's OOM killer struck since it was last asked. */
export interface OomWatch {
  hasKilled(job: Job, usage: Usage): boolean
}

/** Watches the `oom_kill` counter of this process's cgroup (v2 or v1), else the machine's (Linux).
 *  Elsewhere, and where no counter tells: a job that came near its declared memory. */
export function openOomWatch(read: () => number | undefined = readOomKills): OomWatch {
  let known = read()
  return {
    hasKilled(job, usage) {
      const now = read()
      const before = known
      known = now
      if (now !== undefined && before !== undefined && now > before) return true
      const declared = job.resources.memoryMiB * 2 ** 20
      return declared > 0 && usage.peakMemoryBytes >= declared * NEAR
    },
  }
}

/** Of the declared memory: sampling sees the last growth late. */
const NEAR = 0.9

function readOomKills(): number | undefined {
  if (process.platform !== 'linux') return undefined
  for (const path of [...cgroupFiles(), MACHINE_COUNTERS]) {
    const count = readCount(path)
    if (count !== undefined) return count
  }
  return undefined
}

/** Kills in every cgroup of the machine: a container has one of its own, beside pilot's. */
export function readMachineOomKills(): number | undefined {
  return process.platform === 'linux' ? readCount(MACHINE_COUNTERS) : undefined
}

const MACHINE_COUNTERS = '/proc/vmstat'

function readCount(path: string): number | undefined {
  const count = /^oom_kill (\d+)$/m.exec(readText(path))?.[1]
  return count === undefined ? undefined : Number(count)
}

/** In a container the cgroup's own path often is the root of what is mounted. */
function cgroupFiles(): string[] {
  const groups = readText('/proc/self/cgroup')
  const v2 = /^0::(.*)$/m.exec(groups)?.[1] ?? ''
  const v1 = /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(.*)$/m.exec(groups)?.[1] ?? ''
  const root = '/sys/fs/cgroup'
  return [
    `${root}/memory${v1}/memory.oom_control`,
    `${root}/memory/memory.oom_control`,
    `${root}${v2}/memory.events`,
    `${root}/memory.events`,
  ]
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function formatMs(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${Math.round(ms / 100) / 10} s`
}
