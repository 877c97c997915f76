// The log of one attempt: two streams of bytes -> ordered, time-stamped, redacted lines in a file with a capped size.
// Knows nothing of processes. Invariants: nothing unredacted leaves this file; a log that cannot be written is a
// warning, never the end of the job. Line format: `2026-12-01T12:00:00.123Z out| text` (`err|`, `log|` for pilot's own).

import { StringDecoder } from 'node:string_decoder'
import type { LogRecord } from '../model/result.ts'
import { type LogFile, openLogFile } from './log-file.ts'
import { makeRedactor } from './redact.ts'

/** A line without an end is cut at this many characters. */
const MAX_LINE = 64 * 1024

export type StreamName = 'stdout' | 'stderr'

export interface LogOptions {
  /** Absolute path, made with its folder when the first line comes. */
  readonly path: string
  readonly secrets: readonly string[]
  readonly onLine: (stream: StreamName, line: string) => void
  /** A problem with the log itself, once a kind. */
  readonly onWarning: (code: string, message: string) => void
  readonly headBytes?: number
  readonly tailBytes?: number
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

export interface Log {
  write(stream: StreamName, chunk: Uint8Array): void
  /** Writes what is left of unfinished lines. Null where nothing was written. */
  close(): LogRecord | null
}

interface Source {
  readonly name: StreamName
  readonly tag: string
  decoder: StringDecoder | undefined
  /** The unfinished line. */
  rest: string
}

/** Opens the log of an attempt; costs next to nothing until the first byte. */
export function openLog(options: LogOptions): Log {
  const { onLine, now = Date.now } = options
  const redactor = makeRedactor(options.secrets)
  if (redactor.refused > 0) {
    const message = `${redactor.refused} secret(s) shorter than 4 characters cannot be redacted from the log`
    options.onWarning('secret-too-short', message)
  }
  const sources = { stdout: toSource('stdout', 'out'), stderr: toSource('stderr', 'err') }
  let file: LogFile | undefined
  let lastMs = 0

  function emit(source: Source, lines: readonly string[]): void {
    if (lines.length === 0) return
    // A clock set back must not turn the order of lines round.
    lastMs = Math.max(lastMs, now())
    const prefix = `${new Date(lastMs).toISOString()} ${source.tag}| `
    let text = ''
    for (const line of lines) {
      text += `${prefix}${line}\n`
      onLine(source.name, line)
    }
    file ??= openLogFile(options)
    file.append(text, lines.length)
  }

  function take(source: Source, text: string): void {
    const parts = (source.rest + text).split('\n')
    source.rest = foldReturns(parts.pop() ?? '')
    const lines = parts.map((part) => redactor.redact(cleanLine(part)))
    if (source.rest.length > MAX_LINE) {
      // Matches within the text are gone before the cut; one that began in it and may go on is held back whole.
      const line = redactor.redact(cleanLine(source.rest))
      const cut = Math.max(0, line.length - redactor.longestMatch)
      if (cut > 0) lines.push(line.slice(0, cut))
      source.rest = line.slice(cut)
    }
    emit(source, lines)
  }

  return {
    write(stream, chunk) {
      const source = sources[stream]
      source.decoder ??= new StringDecoder('utf8')
      take(source, source.decoder.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)))
    },
    close() {
      for (const source of [sources.stdout, sources.stderr]) {
        const last = source.rest + (source.decoder?.end() ?? '')
        source.rest = ''
        if (last !== '') emit(source, [redactor.redact(cleanLine(last))])
      }
      return file?.close() ?? null
    },
  }
}

function toSource(name: StreamName, tag: string): Source {
  return { name, tag, decoder: undefined, rest: '' }
}

/** Drops the states of a progress bar that a later one overwrote; a return at the very end may belong to `\r\n`. */
function foldReturns(text: string): string {
  const at = text.lastIndexOf('\r', text.length - 2)
  return at < 0 ? text : text.slice(at + 1)
}

const HAS_CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/
// OSC and other strings up to BEL or ST, CSI, two-character escapes, and single controls but tab.
const CONTROL =
  /\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g

/** A line as a person would see it: the last state of a progress bar, without control sequences. */
export function cleanLine(text: string): string {
  if (!HAS_CONTROL.test(text)) return text
  const states = text.split('\r')
  const last = states.findLast((state) => state !== '') ?? ''
  return last.replace(CONTROL, '')
}
