// --to, --from, --only, --force: which stages a run is about, and which must be there already.

import { PilotError } from '../model/error.ts'
import { findStage, type Graph } from './graph.ts'

export interface Selection {
  /** These and all they need. Empty: everything. */
  readonly to: readonly string[]
  /** Only these and what follows from them; what they need must be in the store. */
  readonly from: readonly string[]
  /** Only these; what they need must be in the store. */
  readonly only: readonly string[]
  /** Executed even where a result is kept; what they give replaces it. */
  readonly force: readonly string[]
}

/** What a run may do with a stage: execute it, only look its result up (a selected stage reads it), or nothing. */
export type Role = 'execute' | 'lookup' | 'none'

export interface Selected {
  readonly roles: readonly Role[]
  readonly forced: readonly boolean[]
}

/** What was asked for by name, else the stages nothing else needs. */
export function targetsOf(graph: Graph, { to, only }: Selection): readonly string[] {
  if (to.length + only.length > 0) return [...to, ...only]
  return graph.stages.filter((_, index) => graph.dependents[index]?.length === 0).map((stage) => stage.name)
}

/** @throws PilotError `unknown-stage`, `nothing-selected` */
export function selectStages(graph: Graph, selection: Selection): Selected {
  const reach = (names: readonly string[], edges: Graph['dependents']) => closure(graph, names, edges)
  const upstream = selection.to.length > 0 ? reach(selection.to, graph.dependencies) : undefined
  const downstream = selection.from.length > 0 ? reach(selection.from, graph.dependents) : undefined
  const only =
    selection.only.length > 0 ? new Set(selection.only.map((name) => findStage(graph, name))) : undefined
  const forced = new Set(selection.force.map((name) => findStage(graph, name)))
  const chosen = graph.stages.map(
    (_, index) =>
      (upstream?.has(index) ?? true) && (downstream?.has(index) ?? true) && (only?.has(index) ?? true),
  )
  if (!chosen.includes(true)) {
    throw new PilotError({
      code: 'nothing-selected',
      blame: 'user',
      what: 'no stage fits what was selected',
      hint: 'the stage of --from must lead to the stage of --to: see pilot graph',
    })
  }
  const roles: Role[] = chosen.map((isChosen) => (isChosen ? 'execute' : 'none'))
  // To key a stage, all that it reads must be known, and so on upwards.
  for (const index of closure(
    graph,
    chosen.keys().filter((i) => chosen[i]),
    graph.dependencies,
  )) {
    if (roles[index] === 'none') roles[index] = 'lookup'
  }
  for (const index of forced) {
    if (roles[index] === 'execute') continue
    throw new PilotError({
      code: 'nothing-selected',
      blame: 'user',
      what: `--force names stage "${graph.stages[index]?.name}", which this run does not select`,
      hint: 'name it in --to or --only too',
    })
  }
  return { roles, forced: graph.stages.map((_, index) => forced.has(index)) }
}

function closure(
  graph: Graph,
  start: Iterable<string | number>,
  edges: Graph['dependents'],
): ReadonlySet<number> {
  const found = new Set<number>()
  const stack: number[] = []
  for (const item of start) stack.push(typeof item === 'number' ? item : findStage(graph, item))
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    if (found.has(at)) continue
    found.add(at)
    stack.push(...(edges[at] ?? []))
  }
  return found
}
