// The process table, read through /proc on Linux and `ps` elsewhere (macOS), and which processes belong to a job.
// A process is named by pid and start time, so that a recycled pid is never taken for the one that had it.

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Variable in the environment of every process of a job; its value tells jobs apart. */
export const MARKER = 'PILOT_ACTION'

export interface ProcessRow {
  readonly pid: number
  readonly ppid: number
  readonly pgid: number
  readonly sid: number
  /** Has a controlling terminal: somebody's shell, never a stage's process. */
  readonly hasTerminal: boolean
  /** Ended and not yet collected by its parent: counts as gone. */
  readonly isZombie: boolean
  /** Start time in a unit of the system's own; only compared. */
  readonly start: number
  /** CPU time of the process and of the children it has waited for, in ms. */
  readonly cpuMs: number
  readonly rssBytes: number
}

export type ProcessTable = ReadonlyMap<number, ProcessRow>

/** How to recognise the processes of one job. */
export interface JobMark {
  /** Leader of the job's process group and session. */
  readonly pid: number
  /** Value of `MARKER`. */
  readonly marker: string
  /** The folder that holds the job's workdir, HOME and TMPDIR: absolute, no link in it. */
  readonly folder: string
}

const HAS_PROC = process.platform === 'linux' && existsSync('/proc/self/stat')
/** Linux: the unit of times in /proc is 1/100 s on every architecture Node runs on. */
const MS_PER_TICK = 10
const PAGE_BYTES = 4096

/** Every process of the machine, or those of `pids` (Linux) that exist. */
export function readTable(pids?: Iterable<number>): Map<number, ProcessRow> {
  if (!HAS_PROC) return readPs()
  const table = new Map<number, ProcessRow>()
  for (const pid of pids ?? listPids()) {
    const row = readRow(pid)
    if (row) table.set(pid, row)
  }
  return table
}

/** Reads again what may have changed: all but the rows of `settled` (pid -> start), whose processes are only listed. */
export function refreshTable(
  table: ProcessTable,
  settled: ReadonlyMap<number, number>,
): Map<number, ProcessRow> {
  if (!HAS_PROC) return readPs()
  const fresh = new Map<number, ProcessRow>()
  for (const pid of listPids()) {
    const old = table.get(pid)
    const row = old && settled.get(pid) === old.start ? old : readRow(pid)
    if (row) fresh.set(pid, row)
  }
  return fresh
}

function listPids(): number[] {
  const pids: number[] = []
  for (const name of readdirSync('/proc')) {
    const first = name.charCodeAt(0)
    if (first >= 48 && first <= 57) pids.push(Number(name))
  }
  return pids
}

/** One process, from /proc/<pid>/stat (Linux). */
export function readRow(pid: number): ProcessRow | undefined {
  const text = readText(`/proc/${pid}/stat`)
  if (text === undefined) return undefined
  // The command's name stands in parentheses and may hold anything, also parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const at = (index: number): number => Number(fields[index])
  return {
    pid,
    ppid: at(1),
    pgid: at(2),
    sid: at(3),
    hasTerminal: at(4) !== 0,
    isZombie: fields[0] === 'Z' || fields[0] === 'X',
    start: at(19),
    cpuMs: (at(11) + at(12) + at(13) + at(14)) * MS_PER_TICK,
    rssBytes: at(21) * PAGE_BYTES,
  }
}

/** The newest pid given out on this machine (Linux), or undefined: what was started since has a pid up to it. */
export function newestPid(): number | undefined {
  if (!HAS_PROC) return undefined
  const text = readText('/proc/loadavg')
  return text === undefined ? undefined : Number(text.slice(text.lastIndexOf(' ') + 1))
}

/** The macOS fallback: no environment and no working directory, so the marker and folder go unused there. */
function readPs(): Map<number, ProcessRow> {
  const table = new Map<number, ProcessRow>()
  const columns = 'pid=,ppid=,pgid=,sess=,tty=,stat=,rss=,time=,lstart='
  const text = execFileSync('ps', ['-axo', columns], { encoding: 'utf8', env: { LC_ALL: 'C' } })
  for (const line of text.split('\n')) {
    const [pid, ppid, pgid, sid, tty, state, rss, time, ...start] = line.trim().split(/\s+/)
    if (!pid || !tty || !state || !time) continue
    table.set(Number(pid), {
      pid: Number(pid),
      ppid: Number(ppid),
      pgid: Number(pgid),
      sid: Number(sid) || 0,
      hasTerminal: !tty.startsWith('?'),
      isZombie: state.startsWith('Z'),
      start: Date.parse(start.join(' ')),
      cpuMs: time.split(':').reduce((sum, part) => sum * 60 + Number(part), 0) * 1000,
      rssBytes: Number(rss) * 1024,
    })
  }
  return table
}

/** A process seen to belong to a job stays its own, whatever it does to hide: `pid -> start`. */
export type Remembered = Map<number, number>

export interface Search {
  readonly table: ProcessTable
  /** Pilot and its ancestors: never part of a job, and where orphans end up. */
  readonly forebears: ReadonlySet<number>
  /** True for what is known not to belong to the job, before anything dear is asked of it. */
  readonly isForeign: (row: ProcessRow) => boolean
}

/** The living processes of a job. What `remembered` holds counts by start time, and the answer is added to it. */
export function findProcesses(job: JobMark, search: Search, remembered: Remembered): ProcessRow[] {
  const { table, forebears } = search
  const found = new Map<number, ProcessRow>()
  for (const row of table.values()) {
    if (row.isZombie || row.pid === process.pid || forebears.has(row.pid)) continue
    if (remembered.get(row.pid) === row.start || isOfGroup(row, job)) found.set(row.pid, row)
    else if (!search.isForeign(row) && isMarked(row, job, forebears)) found.set(row.pid, row)
  }
  addDescendants(found, table)
  found.delete(process.pid)
  for (const row of found.values()) remembered.set(row.pid, row.start)
  return [...found.values()]
}

function isOfGroup(row: ProcessRow, job: JobMark): boolean {
  if (row.pgid !== job.pid && row.sid !== job.pid) return false
  // The leader's own pid may have been given to somebody else since it ended; a group's number is not while it lives.
  return row.pid !== job.pid || !HAS_PROC
}

function isMarked(row: ProcessRow, job: JobMark, forebears: ReadonlySet<number>): boolean {
  if (!HAS_PROC) return false
  if (markerOf(row.pid) === job.marker) return true
  // An orphan at work in the job's folder. A shell somebody opened there has a terminal or a living parent.
  if (row.hasTerminal) return false
  const isOrphan = row.ppid <= 1 || forebears.has(row.ppid) || !readRow(row.ppid)
  if (!isOrphan) return false
  const cwd = readLink(`/proc/${row.pid}/cwd`)
  return (
    cwd !== undefined && (cwd.startsWith(`${job.folder}/`) || cwd.replace(/ \(deleted\)$/, '') === job.folder)
  )
}

function addDescendants(found: Map<number, ProcessRow>, table: ProcessTable): void {
  let isGrowing = found.size > 0
  while (isGrowing) {
    isGrowing = false
    for (const row of table.values()) {
      if (row.isZombie || found.has(row.pid) || !found.has(row.ppid)) continue
      found.set(row.pid, row)
      isGrowing = true
    }
  }
}

/** A process, its parent, and so on up to the first. */
export function ancestorsOf(pid: number): Set<number> {
  const table = HAS_PROC ? undefined : readTable()
  const seen = new Set<number>()
  let at: number | undefined = pid
  while (at !== undefined && at > 0 && !seen.has(at)) {
    seen.add(at)
    at = (table ? table.get(at) : readRow(at))?.ppid
  }
  return seen
}

/** Value of the marker a process was started with (Linux; readable for processes of the same user). */
function markerOf(pid: number): string | undefined {
  const text = readText(`/proc/${pid}/environ`)
  if (text === undefined) return undefined
  const entry = `${MARKER}=`
  const at = text.startsWith(entry) ? 0 : text.indexOf(`\0${entry}`) + 1
  if (at === 0 && !text.startsWith(entry)) return undefined
  const end = text.indexOf('\0', at)
  return text.slice(at + entry.length, end < 0 ? undefined : end)
}

/** Largest resident memory a process ever had, in bytes (Linux; else 0). */
export function peakBytesOf(pid: number): number {
  const text = HAS_PROC ? readText(`/proc/${pid}/status`) : undefined
  return Number(/^VmHWM:\s*(\d+) kB$/m.exec(text ?? '')?.[1] ?? 0) * 1024
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // Gone, or another user's: either way nothing to tell.
    return undefined
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** Sends a signal to a process or, below zero, to a group. False when there is none (or it is another user's). */
export function signalProcess(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch {
    return false
  }
}
