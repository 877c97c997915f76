// Why a stage is in its plan state, in a few words.

import type { PlanRow } from '../model/event.ts'
import type { Stage } from '../model/stage.ts'
import { changedFields } from '../plan/decide.ts'
import type { Resolved } from './look-up.ts'
import type { Project } from './project.ts'

/** The plan row of a stage whose inputs are known. */
export function readRow(
  project: Project,
  stage: Stage,
  resolved: Resolved,
  {
    isForced,
    isSelected,
    remote,
  }: { readonly isForced: boolean; readonly isSelected: boolean; readonly remote?: string | undefined },
): PlanRow {
  const row = { stage: stage.name, actionDigest: resolved.key }
  if (isForced) return { ...row, state: 'run', reason: 'forced' }
  if (resolved.result) return { ...row, state: 'hit', reason: 'kept here' }
  if (remote !== undefined) return { ...row, state: 'restore', reason: `kept in ${remote}` }
  if (!isSelected)
    return { ...row, state: 'skip', reason: 'not selected, and nothing is kept of it: the run would fail' }
  return { ...row, state: 'run', reason: runReason(project, stage, resolved) }
}

function runReason({ store }: Project, stage: Stage, resolved: Resolved): string {
  const last = store.lastOf(stage.name)
  const before = last && store.readResult(last.key)
  if (!before) return 'never ran here'
  if (before.actionDigest === resolved.key) return 'its outputs are gone or damaged'
  const fields = changedFields(before.action, resolved.action).map((change) => change.field)
  const shown = fields.slice(0, 3).join(', ')
  return `changed: ${shown}${fields.length > 3 ? ` and ${fields.length - 3} more` : ''}`
}
