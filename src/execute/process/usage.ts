// What a job used: wall time measured here, CPU time and memory of its process tree as sampled by the guard.
// The guard's last sample misses what came after it; the kernel's sum over ended children fills that in.

import { readFileSync } from 'node:fs'
import type { Usage } from '../../model/result.ts'

const MS_PER_TICK = 10

export interface Meter {
  /** Sums over the tree so far. */
  sample(cpuMs: number, peakBytes: number): void
  /** The leader has just been waited for. */
  stop(): void
  usage(): Usage
}

/** CPU time of all ended children of this process when last looked at, in ms. */
let reapedMs = 0

/** @param startedMs of `performance.now()` */
export function openMeter(startedMs: number): Meter {
  let wallMs = 0
  let cpuMs = 0
  let peakMemoryBytes = 0
  let isSampled = false
  // Whatever other children (not jobs) used since the last look is not this job's.
  readReaped()
  return {
    sample(cpu, peak) {
      isSampled = true
      cpuMs = Math.max(cpuMs, cpu)
      peakMemoryBytes = Math.max(peakMemoryBytes, peak)
    },
    stop() {
      wallMs = performance.now() - startedMs
      const reaped = readReaped()
      if (isSampled) cpuMs = Math.max(cpuMs, reaped)
    },
    usage: () => ({
      wallMs: Math.round(wallMs * 10) / 10,
      cpuMs: Math.round(cpuMs),
      peakMemoryBytes,
      method: isSampled ? 'sampled' : 'none',
    }),
  }
}

/** CPU time of children waited for since the last call, with what those had waited for, in ms (Linux; else 0). */
function readReaped(): number {
  if (process.platform !== 'linux') return 0
  const text = readFileSync('/proc/self/stat', 'latin1')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const before = reapedMs
  reapedMs = (Number(fields[13]) + Number(fields[14])) * MS_PER_TICK
  return reapedMs - before
}
