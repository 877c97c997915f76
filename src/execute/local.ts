// The local executor: runs jobs on this machine, each in its own process group, through the guard's process.
// Why not execa: docs/decisions/0003.

import { tmpdir } from 'node:os'
import type { Executor, JobHandle } from '../model/ports.ts'
import { openOomWatch } from './outcome.ts'
import { openGuard } from './process/guard.ts'
import { openPipePool } from './process/pipes.ts'
import { type LocalJob, type Running, type RunningContext, startJob } from './running.ts'

export interface LocalOptions {
  /** Gives a folder for the pipes' temporary folder; the system's by default. Asked once, for the first job. */
  readonly tempRoot?: () => string
  /** What went wrong without failing a job: a log that cannot be written, a secret too short to redact. */
  readonly onWarning?: (code: string, message: string) => void
  /** Between TERM and KILL, in ms. */
  readonly graceMs?: number
}

export interface LocalExecutor extends Executor {
  /** Starts the guard's process ahead of the first job, to save its start-up time then. */
  prepare(): void
  submit(job: LocalJob): Promise<JobHandle>
}

const GRACE_MS = 5_000

/** Opens the executor of this machine. Nothing is started before `prepare` or the first job. */
export function openLocalExecutor(options: LocalOptions = {}): LocalExecutor {
  const jobs = new Map<JobHandle, Running>()
  const onWarning = options.onWarning ?? (() => {})
  const guard = openGuard((message) => onWarning('guard-died', `the guard process died: ${message}`))
  const pipes = openPipePool(options.tempRoot ?? tmpdir, guard.adopt)
  const context: RunningContext = {
    pipes,
    guard,
    oom: openOomWatch(),
    onWarning,
    graceMs: options.graceMs ?? GRACE_MS,
  }
  let started = 0
  return {
    name: 'local',
    prepare: guard.prepare,
    async submit(job) {
      const running = startJob(job, ++started, context)
      jobs.set(running.handle, running)
      return running.handle
    },
    async wait(handle) {
      const running = jobs.get(handle)
      if (!running) throw new TypeError(`no job ${handle} in this executor`)
      const outcome = await running.ended
      jobs.delete(handle)
      return outcome
    },
    cancel(handle, how) {
      jobs.get(handle)?.stop('cancelled', how)
    },
    async reattach() {
      // A local job does not outlive the pilot that started it: the guard sees to that.
      return undefined
    },
    async [Symbol.asyncDispose]() {
      const left = [...jobs.values()]
      for (const running of left) running.stop('cancelled', 'kill')
      await Promise.all(left.map((running) => running.ended))
      guard.close()
      pipes[Symbol.dispose]()
    },
  }
}
