// Gathers what a run's asked-for stages say of themselves.

import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Project } from '../conduct/project.ts'
import type { OutputRecord } from '../model/result.ts'
import { targetsOf } from '../plan/select.ts'
import { formatSummary, type SummaryRow } from '../report/summary.ts'

/** A JSON output larger than this is not read for its summary. */
const MAX_BYTES = 1 << 20

/** @param cwd where the command was started */
export function summarise(project: Project, cwd: string): string {
  const latest = relative(cwd, join(project.store.root, 'latest')) || '.'
  return formatSummary(
    targetsOf(project.graph, project.config.selection).flatMap((stage) => toRow(project, stage, latest)),
    latest,
  )
}

function toRow({ store }: Project, stage: string, latest: string): readonly SummaryRow[] {
  const last = store.lastOf(stage)
  const result = last && store.lookup(last.key)
  const folder = result && store.openTree(result.tree)
  if (!result || !folder) return []
  const outputs = Object.values(result.outputs)
  const texts = outputs.flatMap((output) => readSummary(folder, output) ?? [])
  return [{ stage, text: texts[0], paths: outputs.map((output) => join(latest, stage, output.path)) }]
}

function readSummary(folder: string, { path, sizeBytes }: OutputRecord): string | undefined {
  if (!path.endsWith('.json') || sizeBytes > MAX_BYTES) return undefined
  try {
    const value: unknown = JSON.parse(readFileSync(join(folder, path), 'utf8'))
    const isTold = typeof value === 'object' && value !== null && 'summary' in value
    return isTold && typeof value.summary === 'string' ? value.summary : undefined
  } catch {
    // A file named .json that is none is the stage's own affair.
    return undefined
  }
}
