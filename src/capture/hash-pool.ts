// The threads that hash large files: made with the first one, one a core, and no reason for the process to stay.

import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { HashReply, HashRequest } from './hash-worker.ts'

interface Waiting {
  readonly path: string
  readonly resolve: (hashed: Hashed) => void
  readonly reject: (reason: unknown) => void
}

export interface Hashed {
  readonly digest: string
  /** Bytes hashed, which is the file's size only where it stood still. */
  readonly sizeBytes: number
}

const MAX_THREADS = 8
const idle: Worker[] = []
const queue: Waiting[] = []
const busy = new Map<Worker, Waiting>()

/** sha256 of a large file, hashed on a thread of its own.
 *  @throws the signal's reason once it is aborted; the hashing then ends. */
export function hashOnPool(path: string, signal?: AbortSignal): Promise<Hashed> {
  const { promise, resolve, reject } = Promise.withResolvers<Hashed>()
  const job: Waiting = { path, resolve, reject }
  const abort = (): void => {
    abandon(job)
    reject(signal?.reason)
  }
  if (signal?.aborted) return Promise.reject(signal.reason)
  signal?.addEventListener('abort', abort, { once: true })
  queue.push(job)
  dispatch()
  return promise.finally(() => signal?.removeEventListener('abort', abort))
}

function abandon(job: Waiting): void {
  const place = queue.indexOf(job)
  if (place >= 0) queue.splice(place, 1)
  for (const [worker, current] of busy) {
    if (current !== job) continue
    busy.delete(worker)
    void worker.terminate()
  }
  dispatch()
}

function dispatch(): void {
  while (queue.length > 0) {
    const worker = idle.pop() ?? (busy.size < limit() ? startWorker() : undefined)
    const job = worker && queue.shift()
    if (!job) return
    busy.set(worker, job)
    worker.ref()
    const request: HashRequest = { path: job.path }
    worker.postMessage(request)
  }
}

function limit(): number {
  return Math.min(MAX_THREADS, availableParallelism())
}

function startWorker(): Worker {
  // As source under type stripping, or compiled beside this file.
  const name = import.meta.url.endsWith('.ts') ? './hash-worker.ts' : './hash-worker.js'
  const worker = new Worker(new URL(name, import.meta.url))
  worker.on('message', (reply: HashReply) => {
    const job = busy.get(worker)
    busy.delete(worker)
    idle.push(worker)
    // An idle thread keeps no process alive.
    worker.unref()
    if ('error' in reply) job?.reject(reply.error)
    else job?.resolve({ digest: reply.digest, sizeBytes: reply.sizeBytes })
    dispatch()
  })
  worker.on('error', (error) => {
    const job = busy.get(worker)
    busy.delete(worker)
    job?.reject(error)
    dispatch()
  })
  return worker
}
