// Pilot's side of the guard: a process of its own that starts the jobs, watches them, and ends them all when pilot
// dies, also of kill -9. Started before the first job.
// Why jobs are its children and not pilot's: a fork costs by the memory of who forks (docs/decisions/0003), and a
// parent knows its children from their first moment.

import { type ChildProcess, spawn } from 'node:child_process'
import { getCompileCacheDir } from 'node:module'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { readLines } from './lines.ts'
import type { GuardOrder, GuardReport, StartOrder } from './protocol.ts'

/** How a job ended; `lost` when the guard died over it. */
export type JobEnd = Exclude<GuardReport, { type: 'fault' }> | { readonly type: 'lost' }

export interface Guard {
  /** Starts the guard's process, where none runs. */
  prepare(): void
  start(order: StartOrder, onEnd: (end: JobEnd) => void): void
  /** Says that all that a job printed is read. Until then the guard ends who holds its output open. */
  drained(id: number): void
  stop(id: number, how: 'term' | 'kill', graceMs: number): void
  /** Names a temporary folder to remove when pilot dies. */
  adopt(folder: string): void
  /** Lets the guard end; what still runs is killed. */
  close(): void
}

/** @param onFault told why the guard died, where it could still say */
export function openGuard(onFault: (message: string) => void): Guard {
  const waiting = new Map<number, (end: JobEnd) => void>()
  let link: Duplex | undefined
  let folder: string | undefined

  const send = (order: GuardOrder): void => void link?.write(`${JSON.stringify(order)}\n`)

  function prepare(): void {
    if (link) return
    const guard = spawnGuard()
    // stdio[3] is the duplex pipe asked for; where the spawn itself failed 'error' follows.
    const own = guard.stdio[3] as Duplex | null
    link = own ?? undefined
    const onGone = (): void => {
      if (link === own) link = undefined
      loseAll()
    }
    guard.once('error', onGone)
    guard.unref()
    if (!own) return
    // Nothing but the guard holds the other end: when it closes, the guard is dead, however it died.
    own.once('close', onGone)
    own.on('error', () => own.destroy())
    unref(own)
    readLines(own, (line) => {
      // The other end is this same version's guard-main.ts.
      report(JSON.parse(line) as GuardReport)
    })
    if (folder !== undefined) send({ type: 'folder', path: folder })
  }

  function report(news: GuardReport): void {
    if (news.type === 'fault') {
      onFault(news.message)
      return
    }
    const onEnd = waiting.get(news.id)
    waiting.delete(news.id)
    onEnd?.(news)
  }

  function loseAll(): void {
    const lost = [...waiting.values()]
    waiting.clear()
    for (const onEnd of lost) onEnd({ type: 'lost' })
  }

  return {
    prepare,
    start(order, onEnd) {
      prepare()
      waiting.set(order.id, onEnd)
      send({ type: 'start', ...order })
    },
    drained: (id) => send({ type: 'drained', id }),
    stop: (id, how, graceMs) => send({ type: 'stop', id, how, graceMs }),
    adopt(path) {
      folder = path
      send({ type: 'folder', path })
    },
    close() {
      link?.end()
    },
  }
}

/** Keeps the guard small and quick to fork; it holds next to nothing. */
const NODE_FLAGS = [
  '--max-old-space-size=64',
  '--max-semi-space-size=1',
  '--v8-pool-size=0',
  '--single-threaded-gc',
]

/** The guard has its own session, so that no signal to pilot's group or terminal reaches it, and nothing of pilot's
 *  environment. Compiled it is guard-main.js, in the checkout guard-main.ts: as this file, so that one. */
function spawnGuard(): ChildProcess {
  const here = import.meta.url
  const main = fileURLToPath(new URL(`guard-main${here.slice(here.lastIndexOf('.'))}`, here))
  const cache = getCompileCacheDir()
  return spawn(process.execPath, [...NODE_FLAGS, main], {
    cwd: '/',
    env: cache === undefined ? {} : { NODE_COMPILE_CACHE: cache },
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  })
}

/** The link must not keep pilot alive; a waiting job does that. */
function unref(stream: Duplex): void {
  if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
}
