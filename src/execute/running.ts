// One job as pilot sees it: ordered from the guard, its output read, its end turned into an outcome.

import { realpathSync } from 'node:fs'
import type { Job, JobHandle, JobOutcome } from '../model/ports.ts'
import { type Log, openLog } from './log.ts'
import { type OomWatch, toFailure, toStartFailure } from './outcome.ts'
import type { Guard, JobEnd } from './process/guard.ts'
import { endLost, holdersOf } from './process/leftovers.ts'
import { type Outside, removeOutside } from './process/outside.ts'
import { type OpenPipe, openPipe, type PipePair, type PipePool } from './process/pipes.ts'
import { signalProcess } from './process/table.ts'

export interface RunningContext {
  readonly pipes: PipePool
  readonly guard: Guard
  readonly oom: OomWatch
  readonly onWarning: (code: string, message: string) => void
  readonly graceMs: number
}

/** A job as the local executor takes it: one that starts a container says how that is ended. */
export type LocalJob = Job & { readonly outside?: Outside }

export interface Running {
  readonly handle: JobHandle
  readonly ended: Promise<JobOutcome>
  stop(why: StopReason, how: 'term' | 'kill'): void
}

export type StopReason = 'cancelled' | 'timeout'

interface State {
  readonly job: LocalJob
  readonly marker: string
  readonly cwd: string
  readonly pair: PipePair
  readonly pipes: readonly OpenPipe[]
  /** Resolves when both pipes are at their end. */
  readonly drained: Promise<void>
  readonly log: Log
  timeout: NodeJS.Timeout | undefined
  /** Why pilot ended it, if it did. */
  stopped: StopReason | undefined
}

const NO_USAGE = { wallMs: 0, cpuMs: 0, peakMemoryBytes: 0, method: 'none' } as const
/** Longest delay setTimeout takes; a longer timeout is none. */
const MAX_DELAY_MS = 2 ** 31 - 1
/** With the last process of a job gone its pipes are at their end at once; after this, their holder is looked for. */
const DRAIN_MS = 200

/** Orders a job from the guard. A job that cannot be started is one that has ended already. */
export function startJob(job: LocalJob, id: number, context: RunningContext): Running {
  const { guard } = context
  const handle = `${job.runId}.${id}`
  let state: State
  try {
    state = openState(job, context)
  } catch (error) {
    const ended = Promise.resolve(toUnstarted(job, error))
    return { handle, ended, stop: () => {} }
  }
  const stop: Running['stop'] = (why, how) => {
    state.stopped ??= why
    guard.stop(id, how, context.graceMs)
  }
  const { argv, environment, outside } = job
  const { cwd, marker, pair } = state
  const ended = new Promise<JobOutcome>((resolve, reject) => {
    const onEnd = (end: JobEnd): void => void settle(state, end, context).then(resolve, reject)
    guard.start({ id, argv, cwd, environment, marker, ...pair, outside }, onEnd)
  })
  if (job.timeoutMs !== undefined && job.timeoutMs <= MAX_DELAY_MS) {
    state.timeout = setTimeout(() => stop('timeout', 'term'), job.timeoutMs)
  }
  return { handle, ended, stop }
}

function openState(job: LocalJob, context: RunningContext): State {
  const cwd = realpathSync.native(job.cwd)
  const pair = context.pipes.take()
  const pipes = [openPipe(pair.stdout), openPipe(pair.stderr)]
  const log = openLog({ ...job, path: job.logPath, onWarning: context.onWarning })
  const marker = `${job.runId}:${job.key}:${job.attempt}`
  return {
    job,
    marker,
    cwd,
    pair,
    pipes,
    log,
    drained: read(pipes, log),
    timeout: undefined,
    stopped: undefined,
  }
}

function read(pipes: readonly OpenPipe[], log: Log): Promise<void> {
  let open = pipes.length
  return new Promise((resolve) => {
    for (const [index, { reader }] of pipes.entries()) {
      const name = index === 0 ? 'stdout' : 'stderr'
      reader.on('data', (chunk: Buffer) => log.write(name, chunk))
      // A broken pipe of a dead process is its end, and 'close' follows.
      reader.on('error', () => {})
      reader.on('close', () => {
        if (--open === 0) resolve()
      })
    }
  })
}

function toUnstarted(job: Job, error: unknown): JobOutcome {
  return { failure: toStartFailure(job, error), usage: NO_USAGE, log: null, isolation: job.isolation }
}

/** From the guard's word that the job has ended to its outcome: nothing unread. */
async function settle(state: State, end: JobEnd, context: RunningContext): Promise<JobOutcome> {
  const { job } = state
  clearTimeout(state.timeout)
  if (end.type === 'lost') {
    await endLost({ marker: state.marker, folder: state.cwd })
    if (job.outside) await removeOutside(job.outside, job.environment)
  }
  await drain(state, context)
  if (end.type !== 'lost') context.guard.drained(end.id)
  const log = state.log.close()
  if (end.type === 'lost') {
    const message = 'the guard process that ran it died, so it was ended'
    return { failure: { class: 'infra', message }, usage: NO_USAGE, log, isolation: job.isolation }
  }
  if (end.type === 'unstarted') return toUnstarted(job, end)
  if (end.survivors.length > 0) {
    const pids = end.survivors.join(', ')
    context.onWarning('process-left', `processes ${pids} of stage "${job.stage}" could not be ended`)
  }
  const about = { stopped: state.stopped, isOutOfMemory: context.oom.hasKilled }
  return { failure: toFailure(job, end, end.usage, about), usage: end.usage, log, isolation: job.isolation }
}

/** Reads the pipes to their end. A process that escaped every other search still holds one: that gives it away. */
async function drain(state: State, context: RunningContext): Promise<void> {
  const { pair, pipes, drained } = state
  for (const pipe of pipes) pipe.closeWriter()
  if (!(await within(drained, DRAIN_MS))) {
    for (const pid of holdersOf([pair.stdout, pair.stderr])) signalProcess(pid, 'SIGKILL')
    if (!(await within(drained, 1_000))) {
      context.onWarning('output-held', `a process of stage "${state.job.stage}" keeps its output open`)
      for (const pipe of pipes) pipe.reader.destroy()
      return
    }
  }
  context.pipes.giveBack(pair)
}

async function within(done: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms)
  })
  const isDone = await Promise.race([done.then(() => true), late])
  clearTimeout(timer)
  return isDone
}
