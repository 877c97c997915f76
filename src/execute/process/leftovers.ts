// Ends what a job's processes left behind, so that none survives the job. Costs two calls where nothing is left.

import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import {
  ancestorsOf,
  findProcesses,
  type JobMark,
  newestPid,
  type ProcessRow,
  type ProcessTable,
  type Remembered,
  readTable,
  signalProcess,
} from './table.ts'

/** More pids than this given out since the job began: the whole table is cheaper to read. */
const MAX_RANGE = 200
const DEADLINE_MS = 2_000
/** What starts processes faster than this many looks see them is ended by killing alone. */
const MAX_FREEZES = 20

export interface LeftoverSearch {
  readonly forebears: ReadonlySet<number>
  readonly isForeign: (row: ProcessRow) => boolean
}

/** Kills what is left of a job whose leader has ended, until nothing is. Undefined when nothing was left;
 *  a promise of the processes that would not die otherwise (empty: all gone). */
export function endLeftovers(
  job: JobMark,
  remembered: Remembered,
  search: LeftoverSearch,
): Promise<readonly number[]> | undefined {
  const hadGroup = signalProcess(-job.pid, 'SIGKILL')
  const newest = newestPid()
  // Nothing at all was started on this machine since the leader.
  if (!hadGroup && remembered.size === 0 && newest === job.pid) return undefined
  const table = tableSince(job.pid, newest, remembered)
  const left = findProcesses(job, { table, ...search }, remembered)
  if (!hadGroup && left.length === 0) return undefined
  return killUntilGone(job, left, remembered, search)
}

/** Stops every process of these jobs until no more are seen. Done before killing: none can start another from then on,
 *  and none loses its parent, by which alone a process is known that left its group and cleared its environment. */
export function freeze(
  jobs: Iterable<{ readonly mark: JobMark; readonly remembered: Remembered }>,
  search: LeftoverSearch,
): void {
  const frozen = new Set<number>()
  for (let round = 0, isGrowing = true; isGrowing && round < MAX_FREEZES; round++) {
    isGrowing = false
    const table = readTable()
    for (const { mark, remembered } of jobs) {
      for (const row of findProcesses(mark, { table, ...search }, remembered)) {
        if (frozen.has(row.pid)) continue
        signalProcess(row.pid, 'SIGSTOP')
        frozen.add(row.pid)
        isGrowing = true
      }
    }
  }
}

/** Processes that may descend from the leader: those with a later pid, and those remembered. */
function tableSince(pid: number, newest: number | undefined, remembered: Remembered): ProcessTable {
  if (newest === undefined || newest < pid || newest - pid > MAX_RANGE) return readTable()
  const pids = [...remembered.keys()]
  for (let at = pid + 1; at <= newest; at++) {
    if (existsSync(`/proc/${at}`)) pids.push(at)
  }
  return readTable(pids)
}

async function killUntilGone(
  job: JobMark,
  first: readonly ProcessRow[],
  remembered: Remembered,
  search: LeftoverSearch,
): Promise<readonly number[]> {
  const deadline = performance.now() + DEADLINE_MS
  let left = first
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 50)) {
    signalProcess(-job.pid, 'SIGKILL')
    for (const row of left) signalProcess(row.pid, 'SIGKILL')
    await delay(waitMs)
    left = findProcesses(job, { table: readTable(), ...search }, remembered)
    if (left.length === 0 || performance.now() > deadline) return left.map((row) => row.pid)
  }
}

/** Ends the processes of a job whose guard has died, found by their marker, folder and descent alone. */
export async function endLost(job: Omit<JobMark, 'pid'>): Promise<void> {
  const search = { forebears: ancestorsOf(process.pid), isForeign: () => false }
  const remembered: Remembered = new Map()
  // No process has this number, so nothing counts as of the leader's group.
  const mark = { ...job, pid: Number.NaN }
  for (let deadline = performance.now() + DEADLINE_MS; performance.now() < deadline; await delay(10)) {
    const left = findProcesses(mark, { table: readTable(), ...search }, remembered)
    if (left.length === 0) return
    for (const row of left) signalProcess(row.pid, 'SIGKILL')
  }
}

/** Processes that hold one of these files open (Linux; none elsewhere). */
export function holdersOf(paths: readonly string[]): number[] {
  const holders: number[] = []
  for (const pid of listPids()) {
    if (pid !== process.pid && openFiles(pid).some((path) => paths.includes(path))) holders.push(pid)
  }
  return holders
}

function listPids(): number[] {
  try {
    return readdirSync('/proc').flatMap((name) => Number(name) || [])
  } catch {
    return []
  }
}

function openFiles(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
  } catch {
    // Gone meanwhile, or another user's.
    return []
  }
}
