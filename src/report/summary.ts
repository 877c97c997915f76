// What a run leaves its user with: what the asked-for stages say of themselves, and where everything is. Pure.

export interface SummaryRow {
  readonly stage: string
  /** The text at `summary` of a JSON output, where it has one. */
  readonly text: string | undefined
  /** Paths of its outputs, from where the command was started. */
  readonly paths: readonly string[]
}

/** More stages than this are not listed one by one. */
const MAX_ROWS = 6

/** @param latest path of the folder of links to outputs, from where the command was started */
export function formatSummary(rows: readonly SummaryRow[], latest: string): string {
  const lines = rows.length > MAX_ROWS ? [] : rows.flatMap(formatRow)
  return [
    '',
    ...lines,
    `outputs  ${latest}/<stage>    log  pilot log <stage>    why  pilot why <stage>`,
  ].join('\n')
}

function formatRow({ stage, text, paths }: SummaryRow): readonly string[] {
  const pad = ' '.repeat(stage.length)
  const said = text === undefined ? [] : [text]
  return [...said, ...paths].map((line, i) => `${i === 0 ? stage : pad}  ${line}`)
}
