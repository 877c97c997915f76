// The local executor: runs a job as a child process with its own process group, and ends all of it.
// Why node:child_process and not execa: docs/decisions/0003. What keeps a promise after kill -9 is process/guard.ts.

import { tmpdir } from 'node:os'
import type { Executor, JobHandle } from '../model/ports.ts'
import { openOomWatch } from './outcome.ts'
import { openGuard } from './process/guard.ts'
import { openPipePool } from './process/pipes.ts'
import { ancestorsOf } from './process/table.ts'
import { type Running, type RunningContext, startJob } from './running.ts'

export interface LocalOptions {
  /** Folder for the pipes' temporary folder; the system's by default. */
  readonly tempRoot?: string
  /** What went wrong without failing a job: a log that cannot be written, a guard that had to be restarted. */
  readonly onWarning?: (code: string, message: string) => void
  /** Between TERM and KILL, in ms. */
  readonly graceMs?: number
}

const GRACE_MS = 5_000

/** Opens the executor of this machine. Nothing is started before the first job. */
export function openLocalExecutor(options: LocalOptions = {}): Executor {
  const jobs = new Map<JobHandle, Running>()
  const leaders = new Set<number>()
  const onWarning = options.onWarning ?? (() => {})
  const pipes = openPipePool(options.tempRoot ?? tmpdir())
  const guard = openGuard({ onWarning, folder: () => pipes.folder })
  const context: RunningContext = {
    pipes,
    guard,
    onWarning,
    leaders,
    oom: openOomWatch(),
    graceMs: options.graceMs ?? GRACE_MS,
    forebears: ancestorsOf(process.pid),
  }
  let started = 0
  return {
    name: 'local',
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
