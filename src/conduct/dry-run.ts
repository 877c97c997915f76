// What a run would do, stage by stage, without doing it: the same look-ups in the same order, so that it is then true.

import type { PlanRow } from '../model/event.ts'
import type { ResultBrief } from '../model/ports.ts'
import { selectStages } from '../plan/select.ts'
import { lookUp } from './look-up.ts'
import type { Project } from './project.ts'
import { readRow } from './reason.ts'

/** @returns one row for each selected stage, dependencies first */
export async function dryRun(project: Project): Promise<readonly PlanRow[]> {
  const { graph, config } = project
  const { roles, forced } = selectStages(graph, config.selection)
  const known: (ResultBrief | undefined)[] = []
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
    const resolved = await lookUp(project, known, index)
    if (resolved.result && !forced[index]) known[index] = resolved.result
    rows.push(
      readRow(project, stage, resolved, {
        isForced: forced[index] ?? false,
        isSelected: roles[index] === 'execute',
      }),
    )
  }
  return rows
}
