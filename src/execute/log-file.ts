// The file of a log: appended in one piece a batch, capped to its head and tail, with the digest of what is kept.
// The file holds at most head + 2 x tail while it grows; close() leaves head, one marker line, tail.

import { createHash, type Hash } from 'node:crypto'
import { closeSync, ftruncateSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Digest, digestOf } from '../model/digest.ts'
import type { LogRecord } from '../model/result.ts'

const CAP_BYTES = 4 * 1024 * 1024
const NEWLINE = 10

export interface LogFileOptions {
  readonly path: string
  readonly headBytes?: number
  readonly tailBytes?: number
  readonly onWarning: (code: string, message: string) => void
}

export interface LogFile {
  /** Appends whole lines. */
  append(text: string, lines: number): void
  /** Null where nothing could be written. */
  close(): LogRecord | null
}

interface State {
  readonly path: string
  readonly headCap: number
  readonly tailCap: number
  fd: number | undefined
  sizeBytes: number
  /** Where the head ends; set when the log first grows past its cap. */
  headEnd: number | undefined
  /** Lines cut out after the head, whose marker stands in the file. */
  cutLines: number
  /** Lines that could not be written, not yet marked in the file. */
  lostLines: number
  droppedLines: number
  /** Of all appended so far, while the file is just that. */
  hash: Hash | undefined
}

/** Makes the file at the first append. A write that fails is reported once; later batches are tried again. */
export function openLogFile(options: LogFileOptions): LogFile {
  const state: State = {
    path: options.path,
    headCap: options.headBytes ?? CAP_BYTES,
    tailCap: options.tailBytes ?? CAP_BYTES,
    fd: undefined,
    sizeBytes: 0,
    headEnd: undefined,
    cutLines: 0,
    lostLines: 0,
    droppedLines: 0,
    hash: createHash('sha256'),
  }
  let isWarned = false
  const attempt = (lines: number, work: () => void): void => {
    try {
      work()
    } catch (error) {
      state.lostLines += lines
      state.droppedLines += lines
      if (isWarned) return
      isWarned = true
      options.onWarning('log-unwritable', `lines of the log ${options.path} are lost: ${textOf(error)}`)
    }
  }
  return {
    append(text, lines) {
      attempt(lines, () => {
        state.fd ??= open(state.path)
        if (state.lostLines > 0) writeMarker(state, `${state.lostLines} lines could not be written here`)
        state.lostLines = 0
        write(state, text)
        if (state.sizeBytes > state.headCap + 2 * state.tailCap) compact(state)
      })
    },
    close() {
      if (state.fd === undefined) return null
      attempt(0, () => {
        if (state.sizeBytes > state.headCap + state.tailCap) compact(state)
      })
      const digest = digestOfFile(state)
      closeSync(state.fd)
      if (state.sizeBytes === 0) return null
      return { digest, sizeBytes: state.sizeBytes, droppedLines: state.droppedLines }
    },
  }
}

function open(path: string): number {
  try {
    return openSync(path, 'w+')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    mkdirSync(dirname(path), { recursive: true })
    return openSync(path, 'w+')
  }
}

/** Writes all of `text` at the end of the file, or leaves the file as it was. */
function write(state: State, text: string): void {
  const bytes = Buffer.from(text)
  try {
    writeAt(state, bytes, state.sizeBytes)
  } catch (error) {
    ftruncateSync(fdOf(state), state.sizeBytes)
    throw error
  }
  state.sizeBytes += bytes.length
  state.hash?.update(bytes)
}

function writeMarker(state: State, what: string): void {
  write(state, `${new Date().toISOString()} log| [${what}]\n`)
}

function writeAt(state: State, bytes: Buffer, position: number): void {
  let done = 0
  while (done < bytes.length) {
    done += writeSync(fdOf(state), bytes, done, bytes.length - done, position + done)
  }
}

/** Cuts the middle out: keeps whole lines of the head, one marker, whole lines of the tail. */
function compact(state: State): void {
  const content = readAll(state)
  state.hash = undefined
  if (state.headEnd === undefined) {
    const at = content.lastIndexOf(NEWLINE, state.headCap - 1)
    state.headEnd = at + 1
  }
  const oldMarkerEnd = state.cutLines > 0 ? content.indexOf(NEWLINE, state.headEnd) + 1 : state.headEnd
  const cutEnd = content.indexOf(NEWLINE, content.length - state.tailCap) + 1
  if (cutEnd <= oldMarkerEnd) return
  const cut = countLines(content.subarray(oldMarkerEnd, cutEnd))
  state.cutLines += cut
  state.droppedLines += cut
  const text = `${new Date().toISOString()} log| [${state.cutLines} lines left out here: the log is capped]\n`
  const rest = Buffer.concat([Buffer.from(text), content.subarray(cutEnd)])
  ftruncateSync(fdOf(state), state.headEnd)
  state.sizeBytes = state.headEnd
  writeAt(state, rest, state.headEnd)
  state.sizeBytes += rest.length
}

function readAll(state: State): Buffer {
  const content = Buffer.alloc(state.sizeBytes)
  let done = 0
  while (done < content.length) {
    const count = readSync(fdOf(state), content, done, content.length - done, done)
    if (count === 0) break
    done += count
  }
  return content.subarray(0, done)
}

function digestOfFile(state: State): Digest {
  // `digest` answers a plain string of 64 hex digits, which is what the brand says.
  return state.hash ? (state.hash.digest('hex') as Digest) : digestOf(readAll(state))
}

function countLines(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) count++
  return count
}

function fdOf(state: State): number {
  if (state.fd === undefined) throw new TypeError('the log file is not open')
  return state.fd
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
