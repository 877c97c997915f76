// The text of `pilot why` and `pilot plan`.

import type { PlanRow } from '../model/event.ts'
import type { StageRow } from '../model/ports.ts'
import { formatTable } from './status.ts'

interface Why {
  readonly row: PlanRow
  readonly last: StageRow | undefined
  readonly changes: readonly {
    readonly field: string
    readonly old: string | null
    readonly new: string | null
  }[]
}

/** One line with the verdict, then one for each field that changed: `field: old -> new`. */
export function formatWhy({ row, last, changes }: Why): string {
  const head = `${row.stage}: ${verdict(row)}`
  const before = last ? `  last    run ${last.runId}, ${last.at}` : undefined
  const fields = changes.map(
    (change) => `  ${change.field}: ${formatValue(change.old)} -> ${formatValue(change.new)}`,
  )
  return [head, ...fields, before].filter((line) => line !== undefined).join('\n')
}

function verdict(row: PlanRow): string {
  switch (row.state) {
    case 'hit':
      return 'up to date, nothing would run'
    case 'wait':
      return `cannot be said yet: ${row.reason}`
    default:
      return `would ${row.state}: ${row.reason}`
  }
}

const LONG = 80

function formatValue(value: string | null): string {
  if (value === null) return '(none)'
  const text = value.replace(/\b[0-9a-f]{64}\b/g, (digest) => digest.slice(0, 12))
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text
}

/** One line a stage: state, name, reason. */
export function formatPlan(rows: readonly PlanRow[]): string {
  const tally = new Map<string, number>()
  for (const row of rows) tally.set(row.state, (tally.get(row.state) ?? 0) + 1)
  const sum = [...tally].map(([state, number]) => `${number} ${state}`).join(', ')
  return `${formatTable(rows.map((row) => [row.state, row.stage, row.reason]))}\n\nplan: ${sum}`
}
