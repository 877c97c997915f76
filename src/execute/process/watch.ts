// Looks at the process table while jobs run, so that their descendants are known whatever those do to hide, and
// sums up what they use. Looks after 10, 20, 40 ms of a job's life and so on, then every 250 ms.

import { FIRST_STEP_MS, type GuardedJob, rememberLeader } from './guarded-job.ts'
import { findProcesses, type ProcessRow, refreshTable } from './table.ts'
import { addSample } from './usage.ts'

const LAST_STEP_MS = 250
/** Looking may take a tenth of a core, no more: after a look it rests this many times as long. */
const REST_FACTOR = 9
/** How long a process once seen to be nobody's is not looked at again. */
const FOREIGN_MS = 1_000

export interface Watch {
  /** Begins to look, where it does not already. It stops by itself when no job is left. */
  wake(): void
}

/** @param jobs the running jobs, kept up to date by the caller */
export function openWatch(jobs: ReadonlyMap<number, GuardedJob>, forebears: ReadonlySet<number>): Watch {
  /** Processes seen to belong to no job, as pid -> start. */
  let foreign = new Map<number, number>()
  let foreignSinceMs = 0
  let table = new Map<number, ProcessRow>()
  let restUntilMs = 0
  let isAwake = false

  const isForeign = (row: ProcessRow): boolean => foreign.get(row.pid) === row.start

  function tick(): void {
    isAwake = jobs.size > 0
    if (!isAwake) return
    look()
    setTimeout(tick, FIRST_STEP_MS)
  }

  function look(): void {
    const beganMs = performance.now()
    const due = [...jobs.values()].filter((job) => job.dueMs <= beganMs)
    if (due.length === 0 || beganMs < restUntilMs) return
    if (beganMs - foreignSinceMs > FOREIGN_MS) {
      foreign = new Map()
      foreignSinceMs = beganMs
    }
    table = refreshTable(table, foreign)
    const ours = new Set<number>()
    for (const job of due) for (const row of inspect(job, beganMs)) ours.add(row.pid)
    // A job not due now must find its processes unsettled when it is.
    if (due.length === jobs.size) {
      for (const row of table.values()) if (!ours.has(row.pid)) foreign.set(row.pid, row.start)
    }
    const endedMs = performance.now()
    restUntilMs = endedMs + (endedMs - beganMs) * REST_FACTOR
  }

  function inspect(job: GuardedJob, nowMs: number): readonly ProcessRow[] {
    rememberLeader(job)
    const rows = findProcesses(job.mark, { table, forebears, isForeign }, job.remembered)
    addSample(job.usage, rows)
    job.stepMs = Math.min(job.stepMs * 2, LAST_STEP_MS)
    job.dueMs = nowMs + job.stepMs
    return rows
  }

  return {
    wake() {
      if (isAwake) return
      isAwake = true
      setTimeout(tick, FIRST_STEP_MS)
    },
  }
}
