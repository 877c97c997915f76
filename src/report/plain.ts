// Lines for CI logs and pipes: one a thing that happened, hits in a row as one, a failure with its last log lines.

import { styleText } from 'node:util'
import { assertNever } from '../model/error.ts'
import type { RunEnd, RunEvent, StageEnd } from '../model/event.ts'
import type { Reporter } from '../model/ports.ts'
import { count, formatBytes, formatMs, totalBytes } from './format.ts'

export interface PlainOptions {
  readonly write: (text: string) => void
  readonly hasColor: boolean
  /** Lines of a failed stage's output that are shown. */
  readonly tailLines?: number
  /** ms, of any clock that does not go back. */
  readonly now?: () => number
}

/** A stage that prints shows one of its lines so often: a long wait shows that something goes on. */
const PULSE_MS = 10_000

type Style = Parameters<typeof styleText>[0]

export function plainReporter(options: PlainOptions): Reporter {
  const { write, hasColor, tailLines = 12, now = () => performance.now() } = options
  const paint = (style: Style, text: string) =>
    hasColor ? styleText(style, text, { validateStream: false }) : text
  const tails = new Map<string, string[]>()
  const pulses = new Map<string, number>()
  const failures: StageEnd[] = []
  pulses.set('', now())
  let hits: string[] = []
  const line = (text: string) => write(`${text}\n`)
  const row = (style: Style, verb: string, text: string) => {
    if (hits.length > 0) line(`${paint('green', 'hit  ')} ${formatHits(hits)}`)
    hits = []
    line(`${paint(style, verb.padEnd(5))} ${text}`)
  }
  const onEnd = (end: StageEnd) => {
    switch (end.outcome) {
      case 'hit':
        hits.push(end.stage)
        return
      case 'executed':
        return row(
          'green',
          'done',
          `${end.stage}  ${formatMs(end.usage?.wallMs ?? 0)}  ${formatBytes(totalBytes(end.outputs))}`,
        )
      case 'restored':
        return row('green', 'got', `${end.stage}  ${formatBytes(totalBytes(end.outputs))}`)
      case 'skipped':
        return row('yellow', 'skip', `${end.stage}: ${end.reason ?? ''}`)
      case 'failed':
        failures.push(end)
        return row(
          'red',
          'fail',
          `${end.stage}: ${end.failure?.message.replace(`stage "${end.stage}" `, 'it ').replace(`stage "${end.stage}": `, '') ?? ''}`,
        )
      default:
        return assertNever(end.outcome)
    }
  }
  return {
    on: (event: RunEvent) => {
      switch (event.type) {
        case 'stage-start':
          pulses.set(event.stage, now())
          return row(
            'cyan',
            'run',
            event.attempt > 1 ? `${event.stage} (attempt ${event.attempt})` : event.stage,
          )
        case 'stage-output':
          keepTail(tails, event.stage, event.line, tailLines)
          if (now() - (pulses.get(event.stage) ?? 0) < PULSE_MS) return
          pulses.set(event.stage, now())
          return row('dim', '', `${event.stage}: ${event.line}`)
        case 'stage-lost':
          return row('yellow', 'lost', `${event.stage}: its stored outputs are not whole, it is executed`)
        case 'stage-wait':
          return row('yellow', 'wait', `${event.stage}: being made by ${event.holder}`)
        case 'stage-retry':
          return row(
            'yellow',
            'retry',
            `${event.stage} in ${formatMs(event.delayMs)}: ${event.failure.message}`,
          )
        case 'stage-end':
          return onEnd(event)
        case 'warning':
          return row('yellow', 'warn', `${event.message} [${event.code}]`)
        case 'run-end':
          if (hits.length > 0) line(`${paint('green', 'hit  ')} ${formatHits(hits)}`)
          for (const end of failures) write(formatFailure(end, tails.get(end.stage) ?? [], paint))
          return line(formatEnd(event))
        case 'run-start':
        case 'stage-plan':
          return
        case 'progress':
          if (now() - (pulses.get('') ?? 0) < PULSE_MS) return
          pulses.set('', now())
          return row('dim', '', formatProgress(event))
        default:
          return assertNever(event)
      }
    },
    close: async () => undefined,
  }
}

/** `sending 1.2 GiB of 3.4 GiB`. */
export function formatProgress({
  what,
  doneBytes,
  totalBytes: all,
}: Extract<RunEvent, { type: 'progress' }>): string {
  return all > 0
    ? `${what} ${formatBytes(doneBytes)} of ${formatBytes(all)}`
    : `${what} ${formatBytes(doneBytes)}`
}

/** The last line of a run. */
export function formatEnd(end: RunEnd): string {
  const parts = [
    `${end.executed} executed`,
    count(end.hits, 'hit'),
    `${end.restored} restored`,
    `${end.failed} failed`,
  ]
  if (end.skipped > 0) parts.push(`${end.skipped} skipped`)
  return `pilot: ${parts.join(', ')} in ${formatMs(end.wallMs)}`
}

function formatHits(names: readonly string[]): string {
  return names.length <= 4 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`
}

function keepTail(tails: Map<string, string[]>, stage: string, text: string, lines: number): void {
  const tail = tails.get(stage) ?? []
  tails.set(stage, tail)
  tail.push(text)
  if (tail.length > lines) tail.shift()
}

/** Many messages name the stage themselves. */
function nameStage(stage: string, message: string): string {
  const name = `stage "${stage}"`
  return message.startsWith(name) ? message : `${name}: ${message}`
}

/** What went wrong with a stage: message, place, log and the last lines it printed. */
export function formatFailure(
  end: StageEnd,
  tail: readonly string[],
  paint: (style: Style, text: string) => string,
): string {
  const { failure } = end
  const place = [end.where, end.log && `log ${end.log}`].filter((part) => part).join(', ')
  const lines = [
    `${paint('red', `error[${failure?.class ?? 'failed'}]`)}: ${nameStage(end.stage, failure?.message ?? '')}`,
  ]
  if (place !== '') lines.push(`  where   ${place}`)
  if (failure?.hint) lines.push(`  hint    ${failure.hint}`)
  for (const text of tail) lines.push(`  | ${text}`)
  return `\n${lines.join('\n')}\n\n`
}
