// What a run would do, stage by stage, without doing it: the same look-ups in the same order, so that it is then true.

import type { PlanRow } from '../model/event.ts'
import type { ResultBrief } from '../model/ports.ts'
import { type Selection, selectStages } from '../plan/select.ts'
import { findRemote, lookUp, type Resolved } from './look-up.ts'
import type { Project } from './project.ts'
import { readRow } from './reason.ts'
import { readSources } from './sources.ts'

export interface DryRun {
  /** One row for each selected stage, dependencies first. */
  readonly rows: readonly PlanRow[]
  /** By index, the stages whose inputs are known. */
  readonly resolved: readonly (Resolved | undefined)[]
}

export async function dryRun(
  project: Project,
  selection: Selection = project.config.selection,
): Promise<DryRun> {
  const { graph } = project
  const { roles, forced } = selectStages(graph, selection)
  const sources = await readSources(project, roles)
  const known: (ResultBrief | undefined)[] = []
  const resolved: (Resolved | undefined)[] = []
  const rows: PlanRow[] = []
  for (const index of graph.order) {
    const stage = graph.stages[index]
    if (!stage || roles[index] === 'none') continue
    const unknown = graph.dependencies[index]?.find((dependency) => !known[dependency])
    if (unknown !== undefined) {
      const reason = `waits on ${graph.stages[unknown]?.name}`
      rows.push({ stage: stage.name, state: 'wait', reason, actionDigest: null })
      continue
    }
    const found = lookUp({ project, sources, known }, index)
    resolved[index] = found
    const isForced = forced[index] ?? false
    const isHit = found.result !== undefined && !project.tiers?.isOnly
    const remote = isForced || isHit ? undefined : await findRemote(project, found, false)
    if (!isForced) known[index] = isHit ? found.result : (remote ?? undefined)
    rows.push(
      readRow(project, stage, isHit ? found : { ...found, result: undefined }, {
        isForced,
        remote: remote && project.tiers?.name,
        isSelected: roles[index] === 'execute',
      }),
    )
  }
  return { rows, resolved }
}
