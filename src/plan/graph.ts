// Stages -> graph: who waits for whom, in an order that respects it. All that is wrong with the declarations
// themselves is refused here, before anything runs, naming the stages and where they are declared.

import { PilotError } from '../model/error.ts'
import { didYouMean } from '../model/near.ts'
import type { InputRef, Stage } from '../model/stage.ts'
import { checkStage } from './check.ts'
import { nameStage, placeOf } from './name.ts'

/** Stages by index; every list below is indexed alike. */
export interface Graph {
  readonly stages: readonly Stage[]
  readonly indexOf: ReadonlyMap<string, number>
  /** Indices of the stages whose outputs this one reads, without repetition. */
  readonly dependencies: readonly (readonly number[])[]
  readonly dependents: readonly (readonly number[])[]
  /** Dependencies before dependents; declaration order where the graph leaves room. */
  readonly order: readonly number[]
}

/** @throws PilotError `invalid-stage`, `duplicate-stage`, `unknown-stage`, `unknown-output`, `kind-mismatch`, `cycle` */
export function planGraph(stages: readonly Stage[]): Graph {
  const indexOf = indexStages(stages)
  const dependencies = stages.map((stage) => dependenciesOf(stage, stages, indexOf))
  const dependents: number[][] = stages.map(() => [])
  dependencies.forEach((list, index) => {
    for (const dependency of list) dependents[dependency]?.push(index)
  })
  return { stages, indexOf, dependencies, dependents, order: sortStages(stages, dependencies, dependents) }
}

/** The stage of that name. @throws PilotError `unknown-stage`, with the nearest name. */
export function findStage(graph: Graph, name: string): number {
  const index = graph.indexOf.get(name)
  if (index !== undefined) return index
  throw new PilotError({
    code: 'unknown-stage',
    blame: 'user',
    what: `there is no stage "${name}"${didYouMean(name, graph.indexOf.keys())}`,
    hint: 'list the stages: pilot graph',
  })
}

function indexStages(stages: readonly Stage[]): ReadonlyMap<string, number> {
  const indexOf = new Map<string, number>()
  const folded = new Map<string, Stage>()
  stages.forEach((stage, index) => {
    checkStage(stage)
    // Folded to lower case: on a case-insensitive disk both would write artifacts/latest/<name>.
    const twin = folded.get(stage.name.toLowerCase())
    if (twin) {
      throw new PilotError({
        code: 'duplicate-stage',
        blame: 'user',
        what: `two stages would produce artifacts/latest/${stage.name}: ${nameStage(twin)} and ${nameStage(stage)}`,
        where: placeOf(stage),
        hint: 'give one use another name: stage({ name: "…", … })',
      })
    }
    folded.set(stage.name.toLowerCase(), stage)
    indexOf.set(stage.name, index)
  })
  return indexOf
}

function dependenciesOf(
  stage: Stage,
  stages: readonly Stage[],
  indexOf: ReadonlyMap<string, number>,
): readonly number[] {
  const found: number[] = []
  for (const name in stage.inputs) {
    const input = stage.inputs[name]
    if (input?.from !== 'stage') continue
    const index = producerOf(stage, name, input, stages, indexOf)
    if (!found.includes(index)) found.push(index)
  }
  return found
}

function producerOf(
  stage: Stage,
  name: string,
  input: Extract<InputRef, { from: 'stage' }>,
  stages: readonly Stage[],
  indexOf: ReadonlyMap<string, number>,
): number {
  const index = indexOf.get(input.stage)
  const producer = index === undefined ? undefined : stages[index]
  if (index === undefined || !producer) {
    throw new PilotError({
      code: 'unknown-stage',
      blame: 'user',
      what: `input "${name}" of stage ${nameStage(stage)} comes from stage "${input.stage}", which is not in the pipeline${didYouMean(input.stage, indexOf.keys())}`,
      where: placeOf(stage),
      hint: 'add the stage to the list that definePipeline returns',
    })
  }
  const output = Object.hasOwn(producer.outputs, input.output) ? producer.outputs[input.output] : undefined
  if (!output) {
    throw new PilotError({
      code: 'unknown-output',
      blame: 'user',
      what: `input "${name}" of stage ${nameStage(stage)} wants output "${input.output}" of stage ${nameStage(producer)}, which has none of that name${didYouMean(input.output, Object.keys(producer.outputs))}`,
      where: placeOf(stage),
      hint: `its outputs: ${Object.keys(producer.outputs).join(', ') || 'none'}`,
    })
  }
  if ((output.kind === 'tree') !== (input.kind === 'tree')) {
    throw new PilotError({
      code: 'kind-mismatch',
      blame: 'user',
      what: `input "${name}" of stage ${nameStage(stage)} wants a ${input.kind}, but "${input.output}" of stage ${nameStage(producer)} is a ${output.kind}`,
      where: placeOf(stage),
    })
  }
  return index
}

/** Kahn's order, by index among the ready. @throws PilotError `cycle`, naming the stages along it. */
function sortStages(
  stages: readonly Stage[],
  dependencies: readonly (readonly number[])[],
  dependents: readonly (readonly number[])[],
): readonly number[] {
  const waiting = dependencies.map((list) => list.length)
  const order: number[] = []
  for (let index = 0; index < waiting.length; index++) if (waiting[index] === 0) order.push(index)
  for (let next = 0; next < order.length; next++) {
    for (const dependent of dependents[order[next] ?? -1] ?? []) {
      const left = (waiting[dependent] ?? 0) - 1
      waiting[dependent] = left
      if (left === 0) order.push(dependent)
    }
  }
  if (order.length < stages.length) throw cycleError(stages, dependencies, new Set(order))
  return order
}

function cycleError(
  stages: readonly Stage[],
  dependencies: readonly (readonly number[])[],
  sorted: ReadonlySet<number>,
): PilotError {
  // Every unsorted stage has an unsorted dependency, so walking along them must meet itself.
  const path: number[] = []
  let at = stages.findIndex((_, index) => !sorted.has(index))
  while (!path.includes(at)) {
    path.push(at)
    at = dependencies[at]?.find((dependency) => !sorted.has(dependency)) ?? at
  }
  const cycle = [...path.slice(path.indexOf(at)), at]
    .map((index) => stages[index])
    .filter((stage) => stage !== undefined)
  return new PilotError({
    code: 'cycle',
    blame: 'user',
    what: `stages wait for each other: ${cycle.map(nameStage).join(' needs ')}`,
    where: cycle[0] && placeOf(cycle[0]),
    hint: 'break the circle: one of these inputs must come from elsewhere',
  })
}
