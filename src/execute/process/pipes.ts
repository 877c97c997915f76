// Named pipes for the output of jobs, two a running job, used again by the next. Node's own stdio pipes are sockets,
// and a socket cannot be opened again: `echo text > /dev/stderr`, common in shell scripts, would fail with ENXIO.

import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'

export interface PipePair {
  readonly stdout: string
  readonly stderr: string
}

export interface PipePool extends Disposable {
  /** A pair nobody else holds. @throws when none can be made */
  take(): PipePair
  /** Gives a pair back once every process that wrote to it is gone. */
  giveBack(pair: PipePair): void
}

/** Pairs made at once: starting mkfifo costs more than making many. */
const BATCH = 8

/** @param root gives the folder for the pipes' own folder, which is made at the first `take` and removed on dispose
 *  @param onFolder told the path of that folder */
export function openPipePool(root: () => string, onFolder: (path: string) => void): PipePool {
  const free: PipePair[] = []
  let folder: string | undefined
  let made = 0

  function makeBatch(): PipePair[] {
    if (folder === undefined) {
      folder = mkdtempSync(join(root(), 'pilot-'))
      onFolder(folder)
    }
    const pairs: PipePair[] = []
    for (let end = made + BATCH; made < end; made++) {
      pairs.push({ stdout: join(folder, `${made}.out`), stderr: join(folder, `${made}.err`) })
    }
    execFileSync('mkfifo', ['-m', '600', ...pairs.flatMap((pair) => [pair.stdout, pair.stderr])])
    return pairs
  }

  return {
    take() {
      if (free.length === 0) free.push(...makeBatch())
      const pair = free.pop()
      if (!pair) throw new TypeError('no pipes were made')
      return pair
    },
    giveBack(pair) {
      free.push(pair)
    },
    [Symbol.dispose]() {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface OpenPipe {
  readonly reader: Socket
  /** Ends pilot's own hold on the writing side, which keeps the pipe from ending before a job has opened it:
   *  after this the reader ends when the last process lets go. Idempotent. */
  closeWriter(): void
}

/** Opens both ends of a named pipe. */
export function openPipe(path: string): OpenPipe {
  // Opening for reading first, without waiting for a writer, is what lets the writer open at once.
  const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  let writeFd: number | undefined
  try {
    writeFd = openSync(path, constants.O_WRONLY)
  } catch (error) {
    closeSync(readFd)
    throw error
  }
  return {
    reader: new Socket({ fd: readFd, readable: true, writable: false }),
    closeWriter() {
      if (writeFd !== undefined) closeSync(writeFd)
      writeFd = undefined
    },
  }
}
