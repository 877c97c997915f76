// Named pipes for the output of jobs, two a running job, used again by the next. Node's own stdio pipes are sockets,
// and a socket cannot be opened again: `echo text > /dev/stderr`, common in shell scripts, would fail with ENXIO.

import { spawnSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'

export interface PipePair {
  readonly stdout: string
  readonly stderr: string
}

export interface PipePool extends Disposable {
  /** Folder of the pipes, removed on dispose; undefined until the first pair. */
  readonly folder: string | undefined
  /** A pair nobody else holds, or undefined where the system has no mkfifo: take sockets then. */
  take(): PipePair | undefined
  /** Gives a pair back once every process that wrote to it is gone. */
  giveBack(pair: PipePair): void
}

/** Pairs made at once: starting mkfifo costs more than making many. */
const BATCH = 8

/** @param root folder for the pipes' own folder, made at the first `take` */
export function openPipePool(root: string): PipePool {
  const free: PipePair[] = []
  let folder: string | undefined
  let made = 0
  let isUnavailable = false

  function makeBatch(): void {
    try {
      folder ??= mkdtempSync(join(root, 'pilot-pipes-'))
    } catch {
      isUnavailable = true
      return
    }
    const pairs: PipePair[] = []
    for (let end = made + BATCH; made < end; made++) {
      pairs.push({ stdout: join(folder, `${made}.out`), stderr: join(folder, `${made}.err`) })
    }
    const paths = pairs.flatMap((pair) => [pair.stdout, pair.stderr])
    isUnavailable = spawnSync('mkfifo', ['-m', '600', ...paths], { stdio: 'ignore' }).status !== 0
    if (!isUnavailable) free.push(...pairs)
  }

  return {
    get folder() {
      return folder
    },
    take() {
      if (free.length === 0 && !isUnavailable) makeBatch()
      return free.pop()
    },
    giveBack(pair) {
      free.push(pair)
    },
    [Symbol.dispose]() {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The end of a pipe given to a process: close it once the process has it. */
export interface OpenPipe {
  readonly reader: Socket
  readonly writeFd: number
}

export function openPipe(path: string): OpenPipe {
  // Opening for reading first, without waiting for a writer, is what lets the writer open at once.
  const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const writeFd = openSync(path, constants.O_WRONLY)
    return { reader: new Socket({ fd: readFd, readable: true, writable: false }), writeFd }
  } catch (error) {
    closeSync(readFd)
    throw error
  }
}
