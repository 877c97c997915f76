// The table of `pilot status`, as text.

import type { PlanRow } from '../model/event.ts'
import type { StageRow } from '../model/ports.ts'

export interface StatusRow extends PlanRow {
  readonly last: StageRow | undefined
  /** Of all outputs, where the stage is up to date. */
  readonly sizeBytes: number | undefined
}

export function formatStatus(rows: readonly StatusRow[]): string {
  const cells = rows.map((row) => [
    row.stage,
    row.state === 'hit' ? 'up to date' : row.state,
    row.last ? `${row.last.outcome} ${row.last.at.replace('T', ' ').slice(0, 16)}` : '-',
    row.last ? `${(row.last.wallMs / 1000).toFixed(1)} s` : '-',
    row.sizeBytes === undefined ? '-' : `${row.sizeBytes.toLocaleString('en')} B`,
    row.state === 'hit' ? '' : row.reason,
  ])
  return formatTable([['stage', 'state', 'last', 'took', 'size', ''], ...cells])
}

/** Columns padded to their widest cell. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
