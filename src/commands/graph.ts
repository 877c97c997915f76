// pilot graph: the DAG as text, mermaid, dot or svg.

import { dirname } from 'node:path'
import type { Flags } from '../config.ts'
import { readConfig } from '../config.ts'
import { findPipeline, loadPipeline } from '../declare/load.ts'
import { planGraph } from '../plan/graph.ts'
import { formatGraph, type GraphFormat } from '../report/diagram.ts'
import { print } from './session.ts'

export async function graphCommand(flags: Flags & { readonly format: GraphFormat }): Promise<number> {
  const config = readConfig(flags)
  const path = findPipeline(config.cwd)
  const { pipeline } = await loadPipeline(path, config.recipe)
  print(formatGraph(planGraph(pipeline.stages), flags.format, dirname(path)))
  return 0
}
