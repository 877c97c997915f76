// pilot graph: the DAG as text, mermaid, dot or svg.

import type { Flags } from '../config.ts'
import { readConfig } from '../config.ts'
import { findPipeline, loadPipeline } from '../declare/load.ts'
import { type Graph, planGraph } from '../plan/graph.ts'
import { type DiagramNode, formatGraph, type GraphFormat } from '../report/diagram.ts'
import { print } from './session.ts'

export async function graphCommand(flags: Flags & { readonly format: GraphFormat }): Promise<number> {
  const config = readConfig(flags)
  const { pipeline } = await loadPipeline(findPipeline(config.cwd), config.recipe)
  print(formatGraph(toNodes(planGraph(pipeline.stages)), flags.format))
  return 0
}

/** The stages as the diagrams take them, each after those it needs. */
export function toNodes({ stages, dependencies, order }: Graph): readonly DiagramNode[] {
  return order.flatMap((index) => {
    const stage = stages[index]
    if (!stage) return []
    const needs = (dependencies[index] ?? []).flatMap((from) => stages[from]?.name ?? [])
    return [{ stage: stage.name, needs, outputs: Object.keys(stage.outputs) }]
  })
}
