// The view on a terminal: listr2 rows with times, sizes and hits. Loaded only when it is wanted.
// It begins with the first stage that runs: a run of hits only says so in one line.

import { styleText } from 'node:util'
import { Listr, type ListrTaskWrapper } from 'listr2'
import type { RunEnd, RunEvent, StageEnd } from '../model/event.ts'
import type { Reporter } from '../model/ports.ts'
import { count, formatBytes, formatMs, totalBytes } from './format.ts'
import { formatEnd, formatFailure } from './plain.ts'

// biome-ignore lint/suspicious/noExplicitAny: listr2's own parameters for "any renderer".
type Task = ListrTaskWrapper<unknown, any, any>

export interface LiveOptions {
  readonly write: (text: string) => void
  readonly hasColor: boolean
  /** ms, of any clock that does not go back. */
  readonly now?: () => number
}

/** More stages than this get one row together, with those that run below it. */
const MAX_ROWS = 40
const TICK_MS = 500
const TAIL_LINES = 12
/** Longest line of a stage's output that is shown below its row. */
const MAX_LINE = 100

interface Row {
  task: Task | undefined
  end: (error?: Error) => void
  readonly ended: Promise<void>
}

interface Running {
  readonly sinceMs: number
  line: string
}

export function liveReporter({ write, hasColor, now = () => performance.now() }: LiveOptions): Reporter {
  const rows = new Map<string, Row>()
  const running = new Map<string, Running>()
  const tails = new Map<string, string[]>()
  const ends = new Map<string, StageEnd>()
  const notes: string[] = []
  let stages: readonly string[] = []
  let shown: Promise<unknown> | undefined
  let ticker: NodeJS.Timeout | undefined
  let runEnd: RunEnd | undefined

  const paint = (style: Parameters<typeof styleText>[0], text: string): string =>
    hasColor ? styleText(style, text, { validateStream: false }) : text

  function begin(): void {
    const open = stages.filter((stage) => !ends.has(stage))
    const names = open.length > MAX_ROWS ? [''] : open
    for (const name of names) rows.set(name, makeRow())
    const list = new Listr(
      names.map((name) => ({
        title: name === '' ? titleOfAll() : `${name}  waits`,
        task: (_: unknown, task: Task) => {
          const row = rows.get(name)
          if (row) row.task = task
          return row?.ended
        },
      })),
      {
        concurrent: true,
        exitOnError: false,
        registerSignalListeners: false,
        rendererOptions: { collapseErrors: false, showErrorMessage: false, collapseSkips: false },
      },
    )
    shown = list.run().catch(() => undefined)
    ticker = setInterval(refresh, TICK_MS)
    ticker.unref()
  }

  function refresh(): void {
    const all = rows.get('')?.task
    if (all) {
      all.title = titleOfAll()
      all.output = [...running]
        .map(([stage, { sinceMs }]) => `${stage}  ${formatMs(now() - sinceMs)}`)
        .join('\n')
      return
    }
    for (const [stage, { sinceMs, line }] of running) {
      const task = rows.get(stage)?.task
      if (!task) continue
      task.title = `${stage}  ${formatMs(now() - sinceMs)}`
      if (line !== '') task.output = line.slice(0, MAX_LINE)
    }
  }

  const titleOfAll = (): string => `${ends.size} of ${count(stages.length, 'stage')}, ${running.size} running`

  function end(event: StageEnd): void {
    ends.set(event.stage, event)
    running.delete(event.stage)
    const row = rows.get(event.stage)
    if (!row) return
    if (row.task) row.task.title = titleOf(event)
    row.end(event.outcome === 'failed' ? new Error(event.failure?.message ?? '') : undefined)
  }

  return {
    on: (event: RunEvent) => {
      switch (event.type) {
        case 'run-start':
          stages = event.stages
          return
        case 'stage-start':
          if (!shown) begin()
          running.set(event.stage, { sinceMs: now(), line: '' })
          return
        case 'stage-output': {
          const state = running.get(event.stage)
          if (state) state.line = event.line
          const tail = tails.get(event.stage) ?? []
          tails.set(event.stage, [...tail, event.line].slice(-TAIL_LINES))
          return
        }
        case 'stage-wait':
          if (!shown) begin()
          setTitle(rows, event.stage, `${event.stage}  being made by ${event.holder}`)
          return
        case 'stage-retry':
          notes.push(`${paint('yellow', 'retry')} ${event.stage}: ${event.failure.message}`)
          return
        case 'warning':
          notes.push(`${paint('yellow', 'warn ')} ${event.message} [${event.code}]`)
          return
        case 'stage-end':
          return end(event)
        case 'run-end':
          runEnd = event
          return
        default:
          return
      }
    },
    close: async () => {
      clearInterval(ticker)
      refresh()
      for (const row of rows.values()) row.end()
      await shown
      for (const note of notes) write(`${note}\n`)
      for (const failed of ends.values()) {
        if (failed.outcome === 'failed') write(formatFailure(failed, tails.get(failed.stage) ?? [], paint))
      }
      if (runEnd) write(`${formatEnd(runEnd)}\n`)
    },
  }
}

function setTitle(rows: ReadonlyMap<string, Row>, stage: string, title: string): void {
  const task = rows.get(stage)?.task
  if (task) task.title = title
}

function titleOf(end: StageEnd): string {
  const size = formatBytes(totalBytes(end.outputs))
  switch (end.outcome) {
    case 'executed':
      return `${end.stage}  ${formatMs(end.usage?.wallMs ?? 0)}  ${size}`
    case 'restored':
      return `${end.stage}  restored  ${size}`
    case 'hit':
      return `${end.stage}  hit`
    case 'failed':
      return `${end.stage}: ${end.failure?.message ?? 'failed'}`
    case 'skipped':
      return `${end.stage}  skipped: ${end.reason ?? ''}`
  }
}

function makeRow(): Row {
  let settle: (error?: Error) => void = () => {}
  const ended = new Promise<void>((resolve, reject) => {
    settle = (error) => (error ? reject(error) : resolve())
  })
  // A row that listr2 has not started yet must not count as unhandled.
  ended.catch(() => {})
  return { task: undefined, end: settle, ended }
}
