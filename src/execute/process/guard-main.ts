// The guard's process: starts the jobs pilot orders, and outlives pilot by as long as it takes to end them.
// When the pipe from pilot ends, pilot is gone, however it went: every process of every running job is killed.

import { rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type GuardedJob, startGuarded, stopGuarded } from './guarded-job.ts'
import { readLines } from './lines.ts'
import type { GuardOrder, GuardReport, StartOrder } from './protocol.ts'
import { ancestorsOf, findProcesses, type ProcessRow, readTable, signalProcess } from './table.ts'
import { openWatch } from './watch.ts'

const CLEAN_ROUNDS = 4
const ROUND_MS = 25
/** A process that KILL does not end in this time waits for a device, and nothing else will end it. */
const GIVE_UP_MS = 60_000

// Signals to pilot are not for the guard, and neither is a closed terminal.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGPIPE'] as const)
  process.on(signal, () => {})

/** Jobs with a process alive, settling ones included. */
const jobs = new Map<number, GuardedJob>()
/** Pids of leaders not yet waited for. */
const leaders = new Set<number>()
const forebears = ancestorsOf(process.ppid)
const watch = openWatch(jobs, forebears)
const search = {
  forebears,
  isForeign: (row: ProcessRow): boolean => leaders.has(row.pgid) || leaders.has(row.sid),
}
let folder: string | undefined

const link = new Socket({ fd: 3 })
// A report that finds no reader is of no use, and the end of the link follows.
link.on('error', () => {})
link.on('close', () => void endAll())
link.on('end', () => link.destroy())
readLines(link, (line) => {
  // The other end is this same version's guard.ts.
  obey(JSON.parse(line) as GuardOrder)
})

// A fault here must not be silent: pilot passes it on, and the jobs it loses are ended by pilot.
process.on('uncaughtException', (error) => {
  send({ type: 'fault', message: error.stack ?? error.message })
  link.end(() => process.exit(1))
})

function send(report: GuardReport): void {
  link.write(`${JSON.stringify(report)}\n`)
}

function obey(order: GuardOrder): void {
  if (order.type === 'start') start(order)
  else if (order.type === 'folder') folder = order.path
  else {
    const job = jobs.get(order.id)
    if (job) stopGuarded(job, order.how, order.graceMs)
  }
}

function start(order: StartOrder): void {
  const { job, ended } = startGuarded(order, search, () => {
    if (job) leaders.delete(job.mark.pid)
  })
  if (job) {
    leaders.add(job.mark.pid)
    jobs.set(job.id, job)
    watch.wake()
  }
  void ended.then((report: GuardReport) => {
    jobs.delete(order.id)
    send(report)
  })
}

/** Ends what pilot left running, until nothing of it is seen for some rounds, and then itself. */
async function endAll(): Promise<void> {
  const deadline = performance.now() + GIVE_UP_MS
  const left = [...jobs.values()]
  for (const job of left) stopGuarded(job, 'kill', 0)
  for (let clean = 0; left.length > 0 && clean < CLEAN_ROUNDS && performance.now() < deadline; clean++) {
    const table = readTable()
    for (const job of left) {
      for (const row of findProcesses(
        job.mark,
        { table, forebears, isForeign: () => false },
        job.remembered,
      )) {
        signalProcess(row.pid, 'SIGKILL')
        clean = 0
      }
    }
    await delay(ROUND_MS)
  }
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  process.exit(0)
}
