// pilot export FILE and pilot import FILE: results as one file, for a machine without a network.

import type { Flags } from '../config.ts'
import { EXIT_CODES, PilotError } from '../model/error.ts'
import { findStage } from '../plan/graph.ts'
import { count } from '../report/format.ts'
import { exportResults, importResults } from '../store/bundle.ts'
import { openSession, print } from './session.ts'

/** Exports what the stages (all, where none is named) last came to here. */
export async function exportCommand(file: string, stages: readonly string[], flags: Flags): Promise<number> {
  using session = await openSession(flags)
  const { store, graph } = session.project
  for (const stage of stages) findStage(graph, stage)
  const chosen = stages.length > 0 ? stages : graph.stages.map(({ name }) => name)
  const results = chosen.flatMap((stage) => {
    const last = store.lastOf(stage)
    const result = last && store.readResult(last.key)
    if (result) return [result]
    if (stages.length === 0) return []
    throw new PilotError({
      code: 'no-outputs',
      blame: 'user',
      what: `nothing is kept of stage "${stage}" here`,
      hint: `bring it about: pilot run --to ${stage}`,
    })
  })
  const { trees } = await exportResults(store, results, file)
  print(`${count(results.length, 'result')} with ${count(trees, 'tree')} in ${file}`)
  return EXIT_CODES.ok
}

export async function importCommand(file: string, flags: Flags): Promise<number> {
  using session = await openSession(flags)
  const { results } = await importResults(session.project.store, file)
  print(`${count(results, 'result')} taken in: pilot run uses them`)
  return EXIT_CODES.ok
}
