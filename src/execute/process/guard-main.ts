// The guard's process: starts the jobs pilot orders, and outlives pilot by as long as it takes to end them.
// When the pipe from pilot ends, pilot is gone, however it went: every process of every running job is killed.

import { rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type GuardedJob, killGuarded, startGuarded, stopGuarded } from './guarded-job.ts'
import { holdersOf } from './leftovers.ts'
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
/** Named pipes of jobs whose output pilot has not read to its end: their processes may not all be known. */
const undrained = new Map<number, readonly string[]>()
/** Jobs whose containers may have to be removed before the guard may end. */
const removing = new Map<number, Promise<unknown>>()
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
  else if (order.type === 'drained') undrained.delete(order.id)
  else {
    const job = jobs.get(order.id)
    if (job) stopGuarded(job, order.how, order.graceMs, search)
  }
}

function start(order: StartOrder): void {
  undrained.set(order.id, [order.stdout, order.stderr])
  const { job, ended } = startGuarded(order, search, () => {
    if (job) leaders.delete(job.mark.pid)
  })
  if (job) {
    leaders.add(job.mark.pid)
    jobs.set(job.id, job)
    watch.wake()
  }
  if (order.outside) removing.set(order.id, ended)
  void ended.then((report: GuardReport) => {
    jobs.delete(order.id)
    removing.delete(order.id)
    send(report)
  })
}

/** Ends what pilot left running, until nothing of it is seen for some rounds, and then itself. */
async function endAll(): Promise<void> {
  const deadline = performance.now() + GIVE_UP_MS
  const left = [...jobs.values()]
  killGuarded(left, search)
  for (let clean = 0; undrained.size > 0 && clean < CLEAN_ROUNDS && performance.now() < deadline; clean++) {
    for (const pid of findLeft(left)) {
      signalProcess(pid, 'SIGKILL')
      clean = 0
    }
    await delay(ROUND_MS)
  }
  await Promise.all(removing.values())
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  process.exit(0)
}

function findLeft(left: readonly GuardedJob[]): number[] {
  const look = { table: readTable(), forebears, isForeign: () => false }
  const seen = left.flatMap((job) => findProcesses(job.mark, look, job.remembered).map((row) => row.pid))
  // Whoever holds the output open is of the job, however well it hides.
  return [...seen, ...holdersOf([...undrained.values()].flat())]
}
