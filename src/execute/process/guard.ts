// Pilot's side of the guard: a process of its own that ends every job when pilot dies, also of kill -9, and that
// samples what jobs use meanwhile. Started at the first job, restarted with all running jobs when it dies.
// Messages are lines of JSON; guard-main.ts holds the other side.

import { type ChildProcess, spawn } from 'node:child_process'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { readLines } from './lines.ts'
import type { JobMark, Remembered } from './table.ts'
import type { Meter } from './usage.ts'

/** Pilot to guard. */
export type GuardOrder =
  | { readonly type: 'folder'; readonly path: string }
  | { readonly type: 'job'; readonly id: number; readonly marker: string; readonly folder: string }
  | { readonly type: 'pid'; readonly id: number; readonly pid: number }
  | {
      readonly type: 'known'
      readonly id: number
      readonly processes: readonly (readonly [number, number])[]
    }
  | { readonly type: 'end'; readonly id: number }

/** Guard to pilot, after each look: sums over the job's process tree, and its processes that left the session of
 *  their leader, as pid and start time. */
export interface GuardReport {
  readonly id: number
  readonly cpuMs: number
  readonly peakBytes: number
  readonly strayed: readonly (readonly [number, number])[]
}

/** Where the guard's reports on a job go. */
export interface GuardSink {
  readonly meter: Meter
  readonly remembered: Remembered
}

export interface Guard {
  /** Before a job is started. */
  announce(id: number, mark: JobMark): void
  started(id: number, mark: JobMark & { readonly pid: number }, sink: GuardSink): void
  ended(id: number): void
  /** Lets the guard end. */
  close(): void
}

export interface GuardOptions {
  readonly onWarning: (code: string, message: string) => void
  /** A temporary folder to remove when pilot dies; asked at the first job it exists for. */
  readonly folder: () => string | undefined
}

interface Watched {
  mark: JobMark
  sink: GuardSink | undefined
}

/** Deaths of the guard in a row before pilot gives up on it. */
const MAX_RESTARTS = 5

export function openGuard(options: GuardOptions): Guard {
  const watched = new Map<number, Watched>()
  let link: Duplex | undefined
  let folder: string | undefined
  let restarts = 0
  let isClosed = false

  const send = (order: GuardOrder): void => void link?.write(`${JSON.stringify(order)}\n`)

  function start(): void {
    const process = spawnGuard()
    // stdio[3] is the duplex pipe asked for; null only where the spawn itself failed.
    link = (process.stdio[3] ?? undefined) as Duplex | undefined
    link?.on('error', () => {})
    if (link) readLines(link, (line) => report(JSON.parse(line)))
    const onEnd = (): void => restart(process)
    process.once('exit', onEnd)
    process.once('error', onEnd)
    process.unref()
    unref(link)
    folder = undefined
    for (const [id, job] of watched) announceAgain(id, job)
  }

  function restart(dead: ChildProcess): void {
    dead.removeAllListeners()
    link = undefined
    if (isClosed) return
    if (++restarts > MAX_RESTARTS) {
      options.onWarning(
        'guard-lost',
        'the guard process keeps dying: after kill -9 of pilot its stages would live on',
      )
      return
    }
    options.onWarning('guard-restarted', 'the guard process died and was started again')
    start()
  }

  function report(news: GuardReport): void {
    restarts = 0
    const sink = watched.get(news.id)?.sink
    if (!sink) return
    sink.meter.sample(news.cpuMs, news.peakBytes)
    for (const [pid, start] of news.strayed) sink.remembered.set(pid, start)
  }

  function announceAgain(id: number, job: Watched): void {
    send({ type: 'job', id, marker: job.mark.marker, folder: job.mark.folder })
    if (job.mark.pid !== undefined) send({ type: 'pid', id, pid: job.mark.pid })
    if (job.sink?.remembered.size) send({ type: 'known', id, processes: [...job.sink.remembered] })
  }

  return {
    announce(id, mark) {
      watched.set(id, { mark, sink: undefined })
      if (link) send({ type: 'job', id, marker: mark.marker, folder: mark.folder })
      else if (restarts <= MAX_RESTARTS) start()
    },
    started(id, mark, sink) {
      watched.set(id, { mark, sink })
      send({ type: 'pid', id, pid: mark.pid })
      if (folder === options.folder()) return
      folder = options.folder()
      if (folder !== undefined) send({ type: 'folder', path: folder })
    },
    ended(id) {
      if (watched.delete(id)) send({ type: 'end', id })
    },
    close() {
      isClosed = true
      link?.end()
    },
  }
}

/** The guard has its own session, so that no signal to pilot's group or terminal reaches it, and nothing of pilot's
 *  environment. Compiled it is guard-main.js, in the checkout guard-main.ts: as this file, so that one. */
function spawnGuard(): ChildProcess {
  const here = import.meta.url
  const main = fileURLToPath(new URL(`guard-main${here.slice(here.lastIndexOf('.'))}`, here))
  return spawn(process.execPath, ['--max-old-space-size=64', main], {
    cwd: '/',
    env: {},
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  })
}

function unref(stream: Duplex | undefined): void {
  if (stream && 'unref' in stream && typeof stream.unref === 'function') stream.unref()
}
