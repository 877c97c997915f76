// One job while it runs: started, listened to, stopped, and settled once its leader has ended.

import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, realpathSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Job, JobHandle, JobOutcome } from '../model/ports.ts'
import { type Log, openLog } from './log.ts'
import { type OomWatch, toFailure, toStartFailure } from './outcome.ts'
import type { Guard } from './process/guard.ts'
import { endLeftovers, holdersOf } from './process/leftovers.ts'
import { type OpenPipe, openPipe, type PipePair, type PipePool } from './process/pipes.ts'
import { type JobMark, MARKER, type Remembered, signalProcess } from './process/table.ts'
import { type Meter, openMeter } from './process/usage.ts'

export interface RunningContext {
  readonly pipes: PipePool
  readonly guard: Guard
  readonly oom: OomWatch
  readonly onWarning: (code: string, message: string) => void
  /** Pids of the leaders of all jobs now running. */
  readonly leaders: Set<number>
  readonly forebears: ReadonlySet<number>
  readonly graceMs: number
}

export interface Running {
  readonly handle: JobHandle
  readonly ended: Promise<JobOutcome>
  stop(why: StopReason, how: 'term' | 'kill'): void
}

export type StopReason = 'cancelled' | 'timeout'

interface State {
  readonly id: number
  readonly job: Job
  readonly mark: JobMark & { readonly pid: number }
  readonly pair: PipePair | undefined
  readonly log: Log
  readonly meter: Meter
  readonly remembered: Remembered
  /** Resolves when both streams are at their end. */
  readonly drained: Promise<void>
  readonly closeStreams: () => void
  timeout: NodeJS.Timeout | undefined
  kill: NodeJS.Timeout | undefined
  /** Why pilot ended it, if it did. */
  stopped: StopReason | undefined
  isKilled: boolean
}

/** Longest delay setTimeout takes; a longer timeout is none. */
const MAX_DELAY_MS = 2 ** 31 - 1
/** With the last process of a job gone its pipes are at their end at once; after this, their holder is looked for. */
const DRAIN_MS = 200

/** Starts a job. A job that cannot be started is one that has ended already. */
export function startJob(job: Job, id: number, context: RunningContext): Running {
  const startedMs = performance.now()
  const marker = `${job.runId}:${job.key}:${job.attempt}`
  let pair: PipePair | undefined
  try {
    const folder = realpathSync.native(job.cwd)
    // Before the start: whatever happens to pilot from here on, the guard knows what to look for.
    context.guard.announce(id, { pid: undefined, marker, folder })
    pair = context.pipes.take()
    const { child, streams } = spawnJob(job, marker, pair)
    if (child.pid === undefined) return toUnstarted(id, job, onError(child), context, pair)
    const mark = { pid: child.pid, marker, folder }
    const log = openLog({ ...job, path: job.logPath, onWarning: context.onWarning })
    const flow = listen(streams, log)
    const meter = openMeter(startedMs)
    const remembered: Remembered = new Map()
    context.leaders.add(mark.pid)
    context.guard.started(id, mark, { meter, remembered })
    return follow(child, { ...UNSTOPPED, id, job, mark, pair, log, meter, remembered, ...flow }, context)
  } catch (error) {
    return toUnstarted(id, job, Promise.resolve(error), context, pair)
  }
}

const UNSTOPPED = { timeout: undefined, kill: undefined, stopped: undefined, isKilled: false }

interface Spawned {
  readonly child: ChildProcess
  readonly streams: readonly Readable[]
}

function spawnJob(job: Job, marker: string, pair: PipePair | undefined): Spawned {
  const [program = '', ...rest] = job.argv
  const pipes: OpenPipe[] = pair ? [openPipe(pair.stdout), openPipe(pair.stderr)] : []
  try {
    const child = spawn(program, rest, {
      cwd: job.cwd,
      env: { [MARKER]: marker, ...job.environment },
      // Its own session and process group, so that signals reach all of it and pilot's terminal none of it.
      detached: true,
      stdio: ['ignore', pipes[0]?.writeFd ?? 'pipe', pipes[1]?.writeFd ?? 'pipe'],
    })
    const streams = [pipes[0]?.reader ?? child.stdout, pipes[1]?.reader ?? child.stderr]
    return { child, streams: streams.filter((stream) => stream !== null) }
  } catch (error) {
    for (const pipe of pipes) pipe.reader.destroy()
    throw error
  } finally {
    for (const pipe of pipes) closeSync(pipe.writeFd)
  }
}

function onError(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve) => child.once('error', resolve))
}

function toUnstarted(
  id: number,
  job: Job,
  reason: Promise<unknown>,
  context: RunningContext,
  pair: PipePair | undefined,
): Running {
  const ended = reason.then((error): JobOutcome => {
    context.guard.ended(id)
    if (pair) context.pipes.giveBack(pair)
    const usage = { wallMs: 0, cpuMs: 0, peakMemoryBytes: 0, method: 'none' } as const
    return { failure: toStartFailure(job, error), usage, log: null, isolation: job.isolation }
  })
  return { handle: `0.${id}`, ended, stop: () => {} }
}

function listen(streams: readonly Readable[], log: Log): Pick<State, 'drained' | 'closeStreams'> {
  let open = streams.length
  const drained = new Promise<void>((resolve) => {
    for (const [index, stream] of streams.entries()) {
      const name = index === 0 ? 'stdout' : 'stderr'
      stream.on('data', (chunk: Buffer) => log.write(name, chunk))
      // A broken pipe of a dead process is its end, and 'close' follows.
      stream.on('error', () => {})
      stream.on('close', () => {
        if (--open === 0) resolve()
      })
    }
  })
  return { drained, closeStreams: () => streams.forEach((stream) => void stream.destroy()) }
}

function follow(child: ChildProcess, state: State, context: RunningContext): Running {
  const { job } = state
  const stop: Running['stop'] = (why, how) => stopJob(state, why, how, context.graceMs)
  if (job.timeoutMs !== undefined && job.timeoutMs <= MAX_DELAY_MS) {
    state.timeout = setTimeout(() => stop('timeout', 'term'), job.timeoutMs)
  }
  const ended = new Promise<JobOutcome>((resolve, reject) => {
    child.once('exit', (exitCode, signal) => {
      state.meter.stop()
      settle(state, { exitCode, signal }, context).then(resolve, reject)
    })
  })
  return { handle: `${state.mark.pid}.${state.id}`, ended, stop }
}

function stopJob(state: State, why: StopReason, how: 'term' | 'kill', graceMs: number): void {
  const group = -state.mark.pid
  state.stopped ??= why
  if (how === 'term') {
    if (state.kill) return
    state.kill = setTimeout(() => stopJob(state, why, 'kill', graceMs), graceMs)
    signalProcess(group, 'SIGTERM')
    // A stopped process takes the signal only when it goes on.
    signalProcess(group, 'SIGCONT')
    return
  }
  clearTimeout(state.kill)
  state.isKilled = true
  signalProcess(group, 'SIGKILL')
}

/** From the end of the leader to the end of the job: no process left, nothing unread. */
async function settle(
  state: State,
  exit: { readonly exitCode: number | null; readonly signal: NodeJS.Signals | null },
  context: RunningContext,
): Promise<JobOutcome> {
  const { job, mark, meter } = state
  clearTimeout(state.timeout)
  // A shell dies of TERM at once; what it started may still be saving its state.
  while (state.stopped && !state.isKilled && signalProcess(-mark.pid, 0)) await delay(10)
  clearTimeout(state.kill)
  context.leaders.delete(mark.pid)
  const isForeign = (row: { readonly pgid: number; readonly sid: number }): boolean =>
    context.leaders.has(row.pgid) || context.leaders.has(row.sid)
  const survivors = await endLeftovers(mark, state.remembered, { forebears: context.forebears, isForeign })
  if (survivors && survivors.length > 0) {
    const pids = survivors.join(', ')
    context.onWarning('process-left', `processes ${pids} of stage "${job.stage}" could not be ended`)
  }
  await drain(state, context)
  context.guard.ended(state.id)
  const log = state.log.close()
  const usage = meter.usage()
  const limits = { stopped: state.stopped, graceMs: context.graceMs, isOutOfMemory: context.oom.hasKilled }
  return { failure: toFailure(job, exit, usage, limits), usage, log, isolation: job.isolation }
}

/** Reads the pipes to their end. A process that escaped every other search still holds one: that gives it away. */
async function drain(state: State, context: RunningContext): Promise<void> {
  const { pair, drained } = state
  const isDrained = await within(drained, DRAIN_MS)
  if (!isDrained) {
    for (const pid of pair ? holdersOf([pair.stdout, pair.stderr]) : []) signalProcess(pid, 'SIGKILL')
    if (!(await within(drained, 1_000))) {
      context.onWarning('output-held', `a process of stage "${state.job.stage}" keeps its output open`)
      state.closeStreams()
      return
    }
  }
  if (pair) context.pipes.giveBack(pair)
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
