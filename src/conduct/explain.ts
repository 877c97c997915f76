// Why a stage would run: its plan row, and its action beside the one it last came to here.

import type { PlanRow } from '../model/event.ts'
import type { StageRow } from '../model/ports.ts'
import { changedFields, type FieldChange } from '../plan/decide.ts'
import { findStage } from '../plan/graph.ts'
import { dryRun } from './dry-run.ts'
import type { Project } from './project.ts'

export interface Explained {
  readonly row: PlanRow
  /** The stage's last run here, if any. */
  readonly last: StageRow | undefined
  /** Fields in which the action differs from the last one; empty while the stage waits on another. */
  readonly changes: readonly FieldChange[]
}

/** @throws PilotError `unknown-stage` */
export async function explain(project: Project, name: string): Promise<Explained> {
  const index = findStage(project.graph, name)
  const { rows, resolved } = await dryRun(project, { to: [name], from: [], only: [], force: [] })
  const row = rows.find((candidate) => candidate.stage === name)
  if (!row) throw new RangeError(`stage ${name} is not in its own plan`)
  const last = project.store.lastOf(name)
  const before = last && project.store.readResult(last.key)?.action
  const now = resolved[index]?.action
  return { row, last, changes: before && now ? changedFields(before, now) : [] }
}
