// Times and sizes for people, alike in every report.

import type { OutputRecord } from '../model/result.ts'

/** `0.4 s`, `12.3 s`, `3 min 05 s`, `2 h 14 min`. */
export function formatMs(ms: number): string {
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`
  const minutes = Math.round(seconds / 60)
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const

/** `414 B`, `1.2 MB`: decimal units, as disks and networks count. */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000
    unit++
  }
  return `${unit > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`
}

/** Size of all outputs together, in bytes. */
export function totalBytes(outputs: Readonly<Record<string, OutputRecord>>): number {
  return Object.values(outputs).reduce((sum, output) => sum + output.sizeBytes, 0)
}

/** `1 stage`, `3 stages`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
