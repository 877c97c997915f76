// What commands on kept results share: which stages are meant, and the words where nothing is kept of one.

import { PilotError } from '../model/error.ts'
import { findStage, type Graph } from '../plan/graph.ts'

/** The stages named, or all. @throws PilotError `unknown-stage` */
export function chooseStages(graph: Graph, names: readonly string[]): readonly string[] {
  for (const name of names) findStage(graph, name)
  return names.length > 0 ? names : graph.stages.map(({ name }) => name)
}

/** @param so what follows from it, for the message */
export function nothingKept(stage: string, so = ''): PilotError {
  return new PilotError({
    code: 'no-outputs',
    blame: 'user',
    what: `nothing is kept of stage "${stage}" here${so}`,
    hint: `bring it about: pilot run --to ${stage}`,
  })
}
