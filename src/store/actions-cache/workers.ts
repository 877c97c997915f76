// The worker processes: a few, started when they are needed, kept for the next operation, and gone with pilot.

import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { CacheOrder, CacheReply } from './protocol.ts'

export interface Workers {
  /** Runs one operation. A worker that dies over it leaves a reply that says so. */
  perform(order: CacheOrder): Promise<CacheReply>
}

/** Operations at the same time: each may run tar and zstd. */
const PARALLEL = 4

export function openWorkers(environment: Readonly<Record<string, string | undefined>>): Workers {
  const idle: ChildProcess[] = []
  const waiting: (() => void)[] = []
  let busy = 0

  async function perform(order: CacheOrder): Promise<CacheReply> {
    if (busy >= PARALLEL) await new Promise<void>((resolve) => waiting.push(resolve))
    else busy++
    const worker = idle.pop() ?? startWorker(environment)
    try {
      const reply = await ask(worker, order)
      if (worker.connected) idle.push(worker)
      return reply
    } finally {
      // The place goes to who waits for it, or is free.
      const next = waiting.shift()
      if (next) next()
      else busy--
    }
  }

  return { perform }
}

function ask(worker: ChildProcess, order: CacheOrder): Promise<CacheReply> {
  return new Promise((resolve) => {
    const end = (reply: CacheReply): void => {
      worker.off('message', onReply)
      worker.off('exit', onExit)
      worker.off('error', onError)
      // An idle worker must not keep pilot alive.
      worker.unref()
      worker.channel?.unref()
      resolve(reply)
    }
    // The other end is this same version's worker-main.ts.
    const onReply = (reply: unknown): void => end(reply as CacheReply)
    const onExit = (): void => end({ key: null, text: '::error::the worker of the Actions cache died' })
    const onError = (error: Error): void => end({ key: null, text: `::error::${error.message}` })
    worker.once('message', onReply)
    worker.once('exit', onExit)
    worker.once('error', onError)
    worker.ref()
    worker.channel?.ref()
    // A worker that is gone is told of by `exit` or `error`.
    worker.send(order, (error) => error && onError(error))
  })
}

/** Its output is taken by itself; what the runtime prints goes nowhere. Compiled it is worker-main.js. */
function startWorker(environment: Readonly<Record<string, string | undefined>>): ChildProcess {
  const here = import.meta.url
  const main = fileURLToPath(new URL(`worker-main${here.slice(here.lastIndexOf('.'))}`, here))
  const worker = fork(main, {
    cwd: '/',
    env: { ...environment },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  // Of a worker that could not start: `ask` says so, and nobody else needs to.
  worker.on('error', () => undefined)
  return worker
}
