// CPU time and memory of a process tree, summed from samples of its processes.

import { readFileSync } from 'node:fs'
import { type ProcessRow, peakBytesOf } from './table.ts'

export interface TreeUsage {
  /** Of all processes seen, also those that ended, in ms. Never falls. */
  cpuMs: number
  /** Largest sum of resident memory, in bytes; pages shared by two processes count twice. */
  peakBytes: number
  /** CPU time of processes that ended without a parent in the tree to add it to its own. */
  lostMs: number
  last: ReadonlyMap<number, ProcessRow>
}

export function emptyUsage(): TreeUsage {
  return { cpuMs: 0, peakBytes: 0, lostMs: 0, last: new Map() }
}

/** Adds a sample: the rows of the tree's living processes. */
export function addSample(usage: TreeUsage, rows: readonly ProcessRow[], peakOf = peakBytesOf): void {
  const now = new Map(rows.map((row) => [row.pid, row]))
  for (const row of usage.last.values()) {
    if (now.get(row.pid)?.start !== row.start && !isInherited(row, usage.last, now)) usage.lostMs += row.cpuMs
  }
  let cpuMs = usage.lostMs
  let residentBytes = 0
  for (const row of rows) {
    cpuMs += row.cpuMs
    residentBytes += row.rssBytes
    usage.peakBytes = Math.max(usage.peakBytes, peakOf(row.pid))
  }
  usage.cpuMs = Math.max(usage.cpuMs, cpuMs)
  usage.peakBytes = Math.max(usage.peakBytes, residentBytes)
  usage.last = now
}

/** An ended process was waited for by its parent, whose own figures hold it from then on - if one lives above it. */
function isInherited(
  row: ProcessRow,
  last: ReadonlyMap<number, ProcessRow>,
  now: ReadonlyMap<number, ProcessRow>,
): boolean {
  for (let parent = last.get(row.ppid); parent; parent = last.get(parent.ppid)) {
    if (now.get(parent.pid)?.start === parent.start) return true
  }
  return false
}

const MS_PER_TICK = 10
let reapedMs = 0

/** CPU time of this process's children waited for since the last call, and of all those had waited for, in ms
 *  (Linux; else 0). */
export function readReaped(): number {
  if (process.platform !== 'linux') return 0
  const text = readFileSync('/proc/self/stat', 'latin1')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const before = reapedMs
  reapedMs = (Number(fields[13]) + Number(fields[14])) * MS_PER_TICK
  return reapedMs - before
}
