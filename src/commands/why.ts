// pilot why STAGE: the exact fields in which the action now differs from the one last brought about here.

import { dryRun } from '../conduct/dry-run.ts'
import { lookUp } from '../conduct/look-up.ts'
import type { Flags } from '../config.ts'
import { changedFields } from '../plan/decide.ts'
import { findStage } from '../plan/graph.ts'
import { formatWhy } from '../report/explain.ts'
import { openSession, print } from './session.ts'

export async function whyCommand(
  name: string,
  flags: Flags & { readonly json?: boolean | undefined },
): Promise<number> {
  using session = await openSession({ ...flags, to: [name] })
  const { project } = session
  const index = findStage(project.graph, name)
  const rows = await dryRun(project)
  const row = rows.find((candidate) => candidate.stage === name)
  if (!row) throw new RangeError(`no plan row for ${name}`)
  const last = project.store.lastOf(name)
  const before = last && project.store.readResult(last.key)
  const known = []
  for (const done of rows) {
    const at = project.graph.indexOf.get(done.stage) ?? -1
    known[at] =
      done.actionDigest && done.state === 'hit' ? project.store.lookup(done.actionDigest) : undefined
  }
  const resolved = row.state === 'wait' ? undefined : await lookUp(project, known, index)
  const changes = before && resolved ? changedFields(before.action, resolved.action) : []
  if (flags.json) print(JSON.stringify({ ...row, lastRun: last?.runId ?? null, changes }))
  else print(formatWhy({ row, last, changes }))
  return 0
}
