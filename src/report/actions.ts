// The gate's report as GitHub Actions takes it: workflow commands, the job summary, step outputs. Pure. Escapes follow
// the runner: https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts

import type { Place } from '../model/stage.ts'
import { type DiagramNode, formatGraph } from './diagram.ts'
import { count, formatMs } from './format.ts'
import { type Check, type Evidence, type Judgement, type StageEvidence, toLine } from './gate.ts'

/** `::error file=…,line=…,title=…::…` for a failed check, `::warning` for one that is not established.
 *  @param place of the stage, its file as the repository names it */
export function formatAnnotation(check: Check, place: Place | undefined): string {
  const properties = {
    ...(place && { file: place.file, line: String(place.line) }),
    title: `pilot gate: ${check.name}: ${check.verdict}`,
  }
  const words = Object.entries(properties).map(([name, value]) => `${name}=${escapeProperty(value)}`)
  const level = check.verdict === 'fail' ? 'error' : 'warning'
  return `::${level} ${words.join(',')}::${escapeData(`${check.kind} ${check.name}: ${check.found}`)}`
}

function escapeData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}

/** Text for the log in which the runner finds no command: it obeys `::name::` at a line's start and the older
 *  `##[name]` anywhere, and what stages wrote is quoted in reports. */
export function toPlainLog(text: string): string {
  return text.replaceAll('##[', '## [').replace(/^(\s*):(?=:)/gm, '$1: ')
}

/** Mermaid refuses larger diagrams, and GitHub summaries above 1 MiB. */
const MOST_ARROWS = 400
const MOST_ROWS = 500

/** Markdown: the verdict, the DAG, the stages, the checks. */
export function formatJobSummary(
  { verdict, checks }: Judgement,
  { stages }: Evidence,
  nodes: readonly DiagramNode[],
): string {
  const failed = new Set(checks.flatMap((check) => (check.verdict === 'fail' ? [check.stage] : [])))
  return [
    `## pilot gate: ${verdict}`,
    ...toDiagram(nodes),
    toTable(
      ['stage', 'state', 'time', 'checks'],
      stages.map((stage) => toStageRow(stage, checks, failed)),
    ),
    toTable(
      ['verdict', 'check', 'found'],
      checks.map((check) => [check.verdict, `${check.kind} ${check.name}`, check.found]),
    ),
    '',
  ].join('\n\n')
}

function toDiagram(nodes: readonly DiagramNode[]): readonly string[] {
  const arrows = nodes.reduce((sum, { needs }) => sum + needs.length, 0)
  if (nodes.length === 0) return []
  if (nodes.length + arrows > MOST_ARROWS) return [`${count(nodes.length, 'stage')}, too many for a picture`]
  return [`\`\`\`mermaid\n${formatGraph(nodes, 'mermaid')}\n\`\`\``]
}

function toStageRow(
  { stage, state, outcome, wallMs }: StageEvidence,
  checks: readonly Check[],
  failed: ReadonlySet<string>,
): readonly string[] {
  const own = checks.filter((check) => check.stage === stage)
  const passed = own.filter(({ verdict }) => verdict === 'pass').length
  const tally =
    own.length === 0 ? '' : `${passed} of ${own.length} pass${failed.has(stage) ? ', failed' : ''}`
  const shown = state === 'hit' || outcome === 'failed' ? (outcome ?? 'hit') : state
  return [stage, shown, wallMs === undefined ? '' : formatMs(wallMs), tally]
}

function toTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const shown = rows.slice(0, MOST_ROWS)
  const more = rows.length - shown.length
  return [
    toRow(head),
    toRow(head.map(() => '---')),
    ...shown.map((row) => toRow(row.map(escapeMarkdown))),
    ...(more > 0 ? [`\n${more} more`] : []),
  ].join('\n')
}

function toRow(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}

/** Every ASCII mark that could begin markup; line breaks would end the table. */
function escapeMarkdown(text: string): string {
  return toLine(text).replace(/[\\`*_{}[\]<>()#|~!&$@]/g, '\\$&')
}

/** Lines for GITHUB_OUTPUT. */
export function formatStepOutput({ verdict }: Judgement): string {
  return `verdict=${verdict}\n`
}
