// The guard: a process beside pilot that outlives it by as long as it takes to end pilot's jobs.
// Looks at the process table while jobs run, so that it knows their descendants whatever those do to hide, and
// reports what they use. When the pipe from pilot ends with jobs still running, pilot is dead: all of theirs is killed.

import { rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { GuardOrder, GuardReport } from './guard.ts'
import { readLines } from './lines.ts'
import {
  ancestorsOf,
  findProcesses,
  type JobMark,
  type ProcessRow,
  type Remembered,
  readRow,
  readTable,
  refreshTable,
  signalProcess,
} from './table.ts'
import { addSample, emptyUsage, type TreeUsage } from './tree-usage.ts'

interface GuardedJob {
  mark: JobMark
  readonly remembered: Remembered
  readonly usage: TreeUsage
  /** Time of the next look, and how long after it the one after that is due. */
  dueMs: number
  stepMs: number
}

const FIRST_STEP_MS = 10
const LAST_STEP_MS = 250
/** Looking at the table may take a tenth of a core, no more. */
const REST_FACTOR = 9
/** How long a process once seen to be nobody's is not looked at again. */
const FOREIGN_MS = 1_000
const CLEAN_ROUNDS = 4
const ROUND_MS = 25
/** A process that KILL does not end in this time waits for a device, and nothing else will end it. */
const GIVE_UP_MS = 60_000

// Signals to pilot are not for the guard, and neither is a closed terminal.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGPIPE'] as const)
  process.on(signal, () => {})

const jobs = new Map<number, GuardedJob>()
const forebears = ancestorsOf(process.ppid)
/** Processes seen to belong to no job, as pid -> start. */
let foreign = new Map<number, number>()
let foreignSinceMs = 0
let table = new Map<number, ProcessRow>()
let restUntilMs = 0
let folder: string | undefined
let isTicking = false

const link = new Socket({ fd: 3 })
// A report that finds no reader is of no use, and the end of the link follows.
link.on('error', () => {})
link.on('end', () => void onPilotGone())
readLines(link, (line) => {
  // The other end is this same version's guard.ts.
  obey(JSON.parse(line) as GuardOrder)
  if (!isTicking && jobs.size > 0) tick()
})

/** Reads what pilot has sent and looks at the jobs that are due. Between ticks the link is left unread while jobs run:
 *  pilot's messages would wake this process a thousand times a second where stages are tiny. */
function tick(): void {
  isTicking = true
  link.resume()
  setImmediate(() => {
    isTicking = jobs.size > 0
    if (!isTicking) return
    link.pause()
    look()
    setTimeout(tick, FIRST_STEP_MS)
  })
}

function obey(order: GuardOrder): void {
  if (order.type === 'folder') folder = order.path
  else if (order.type === 'end') jobs.delete(order.id)
  else if (order.type === 'job') {
    const mark = { pid: undefined, marker: order.marker, folder: order.folder }
    const dueMs = performance.now() + FIRST_STEP_MS
    jobs.set(order.id, { mark, remembered: new Map(), usage: emptyUsage(), dueMs, stepMs: FIRST_STEP_MS })
  } else {
    const job = jobs.get(order.id)
    if (order.type === 'pid' && job) job.mark = { ...job.mark, pid: order.pid }
    if (order.type === 'known') for (const [pid, start] of order.processes) job?.remembered.set(pid, start)
  }
}

function look(): void {
  const beganMs = performance.now()
  const due = [...jobs].filter(([, job]) => job.dueMs <= beganMs)
  if (due.length === 0 || beganMs < restUntilMs) return
  if (beganMs - foreignSinceMs > FOREIGN_MS) {
    foreign = new Map()
    foreignSinceMs = beganMs
  }
  table = refreshTable(table, foreign)
  const ours = new Set<number>()
  for (const [id, job] of due) {
    const rows = find(job)
    for (const row of rows) ours.add(row.pid)
    job.stepMs = Math.min(job.stepMs * 2, LAST_STEP_MS)
    job.dueMs = beganMs + job.stepMs
    if (rows.length === 0) continue
    addSample(job.usage, rows)
    report(id, job, rows)
  }
  // A job not due now will look for its processes among those not yet settled.
  if (due.length === jobs.size) {
    for (const row of table.values()) if (!ours.has(row.pid)) foreign.set(row.pid, row.start)
  }
  restUntilMs = performance.now() + (performance.now() - beganMs) * REST_FACTOR
}

function find(job: GuardedJob): ProcessRow[] {
  const { pid } = job.mark
  const leader = pid === undefined ? undefined : readRow(pid)
  // Pilot has not said that the job ended, so its leader is not yet waited for and the pid still its own.
  if (leader && !job.remembered.has(leader.pid)) job.remembered.set(leader.pid, leader.start)
  const isForeign = (row: ProcessRow): boolean => foreign.get(row.pid) === row.start
  return findProcesses(job.mark, { table, forebears, isForeign }, job.remembered)
}

function report(id: number, job: GuardedJob, rows: readonly ProcessRow[]): void {
  const strayed = rows
    .filter((row) => row.sid !== job.mark.pid)
    .map((row): readonly [number, number] => [row.pid, row.start])
  const { cpuMs, peakBytes } = job.usage
  link.write(`${JSON.stringify({ id, cpuMs, peakBytes, strayed } satisfies GuardReport)}\n`)
}

/** Ends what pilot left running, until nothing of it is seen for some rounds. */
async function onPilotGone(): Promise<void> {
  const deadline = performance.now() + GIVE_UP_MS
  foreign = new Map()
  for (let clean = 0; jobs.size > 0 && clean < CLEAN_ROUNDS && performance.now() < deadline; clean++) {
    table = readTable()
    for (const job of jobs.values()) {
      for (const row of find(job)) {
        signalProcess(row.pid, 'SIGKILL')
        clean = 0
      }
    }
    await delay(ROUND_MS)
  }
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  process.exit(0)
}
