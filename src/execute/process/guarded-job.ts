// One job in the guard: started, stopped, and settled when its leader has ended. No process of it outlives settling.

import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Usage } from '../../model/result.ts'
import { endLeftovers, freeze, type LeftoverSearch } from './leftovers.ts'
import { removeOutside } from './outside.ts'
import type { GuardReport, StartOrder } from './protocol.ts'
import { type JobMark, MARKER, type Remembered, readRow, signalProcess } from './table.ts'
import { emptyUsage, readReaped, type TreeUsage } from './usage.ts'

export interface GuardedJob {
  readonly id: number
  readonly mark: JobMark
  readonly remembered: Remembered
  readonly usage: TreeUsage
  readonly startedMs: number
  /** Time of the watch's next look, and how long after it the one after that is due. */
  dueMs: number
  stepMs: number
  kill: NodeJS.Timeout | undefined
  /** False once the leader is waited for: from then on its pid may be somebody else's. */
  isLeading: boolean
  isStopped: boolean
  isKilled: boolean
}

export interface StartedJob {
  readonly job: GuardedJob | undefined
  /** Resolves when no process of the job is left. */
  readonly ended: Promise<GuardReport>
}

export const FIRST_STEP_MS = 10

/** @param onLeaderEnd called when the leader is waited for: from then on its pid may be somebody else's */
export function startGuarded(order: StartOrder, search: LeftoverSearch, onLeaderEnd: () => void): StartedJob {
  let child: ChildProcess
  try {
    child = spawnLeader(order)
  } catch (error) {
    return { job: undefined, ended: Promise.resolve(toUnstarted(order.id, error)) }
  }
  if (child.pid === undefined) {
    const ended = new Promise<GuardReport>((resolve) => {
      child.once('error', (error) => resolve(toUnstarted(order.id, error)))
    })
    return { job: undefined, ended }
  }
  const job = toJob(order, child.pid)
  const ended = new Promise<GuardReport>((resolve, reject) => {
    child.once('exit', (exitCode, signal) => {
      const usage = toUsage(job, performance.now() - job.startedMs, readReaped())
      job.isLeading = false
      onLeaderEnd()
      settle(job, search).then(async (survivors) => {
        // A command that ended by itself has seen to what it started.
        if (order.outside && (job.isStopped || signal !== null)) {
          await removeOutside(order.outside, order.environment)
        }
        resolve({ type: 'ended', id: job.id, exitCode, signal, usage, survivors })
      }, reject)
    })
  })
  return { job, ended }
}

function spawnLeader(order: StartOrder): ChildProcess {
  const [program = '', ...rest] = order.argv
  // Open for both ways: opening a pipe for writing alone waits for a reader, and pilot may have died meanwhile.
  const fds = [openSync(order.stdout, constants.O_RDWR), openSync(order.stderr, constants.O_RDWR)]
  try {
    return spawn(program, rest, {
      cwd: order.cwd,
      env: { [MARKER]: order.marker, ...order.environment },
      // Its own session and process group: signals reach all of it, and pilot's terminal none of it.
      detached: true,
      stdio: ['ignore', ...fds],
    })
  } finally {
    for (const fd of fds) closeSync(fd)
  }
}

function toJob(order: StartOrder, pid: number): GuardedJob {
  const startedMs = performance.now()
  return {
    id: order.id,
    mark: { pid, marker: order.marker, folder: order.cwd },
    remembered: new Map(),
    usage: emptyUsage(),
    startedMs,
    dueMs: startedMs + FIRST_STEP_MS,
    stepMs: FIRST_STEP_MS,
    kill: undefined,
    isLeading: true,
    isStopped: false,
    isKilled: false,
  }
}

function toUnstarted(id: number, error: unknown): GuardReport {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return { type: 'unstarted', id, code, message: error instanceof Error ? error.message : String(error) }
}

/** TERM to the group and KILL after the grace, or KILL at once. */
export function stopGuarded(
  job: GuardedJob,
  how: 'term' | 'kill',
  graceMs: number,
  search: LeftoverSearch,
): void {
  const group = -job.mark.pid
  job.isStopped = true
  if (how === 'kill') {
    killGuarded([job], search)
  } else if (!job.kill) {
    job.kill = setTimeout(() => killGuarded([job], search), graceMs)
    signalProcess(group, 'SIGTERM')
    // A stopped process takes the signal only when it goes on.
    signalProcess(group, 'SIGCONT')
  }
}

/** KILL to all that is known of these jobs. */
export function killGuarded(jobs: readonly GuardedJob[], search: LeftoverSearch): void {
  for (const job of jobs) {
    clearTimeout(job.kill)
    job.isStopped = true
    job.isKilled = true
    rememberLeader(job)
  }
  freeze(jobs, search)
  for (const job of jobs) signalProcess(-job.mark.pid, 'SIGKILL')
}

/** Learns the start time of a leader that has not been waited for, whose pid thus is still its own. */
export function rememberLeader(job: GuardedJob): void {
  if (!job.isLeading || job.remembered.has(job.mark.pid)) return
  const leader = readRow(job.mark.pid)
  if (leader) job.remembered.set(leader.pid, leader.start)
}

async function settle(job: GuardedJob, search: LeftoverSearch): Promise<readonly number[]> {
  // A shell dies of TERM at once; what it started may still be saving its state.
  while (job.isStopped && !job.isKilled && signalProcess(-job.mark.pid, 0)) await delay(10)
  clearTimeout(job.kill)
  return (await endLeftovers(job.mark, job.remembered, search)) ?? []
}

/** The last sample misses what came after it; the kernel's sum over ended children fills that in. */
function toUsage(job: GuardedJob, wallMs: number, reapedMs: number): Usage {
  const { usage } = job
  const isSampled = usage.last.size > 0
  return {
    wallMs: Math.round(wallMs * 10) / 10,
    cpuMs: isSampled ? Math.round(Math.max(usage.cpuMs, reapedMs)) : 0,
    peakMemoryBytes: usage.peakBytes,
    method: isSampled ? 'sampled' : 'none',
  }
}
