// pilot doctor: what this machine has and lacks for the recipe, and how to mend it. Opens no store, so that it can
// also tell why one cannot be opened.

import { dirname } from 'node:path'
import { checkStore } from '../conduct/check-store.ts'
import { type Flags, readConfig } from '../config.ts'
import { findPipeline, loadPipeline } from '../declare/load.ts'
import { probeMachine } from '../execute/doctor.ts'
import { PilotError } from '../model/error.ts'
import type { Needs } from '../model/machine.ts'
import type { Pipeline } from '../model/stage.ts'
import { planGraph } from '../plan/graph.ts'
import { diagnose, exitOfFindings, type Finding, formatFindings } from '../report/doctor.ts'
import { print } from './session.ts'

export async function doctorCommand(flags: Flags & { readonly json?: boolean | undefined }): Promise<number> {
  const config = readConfig(flags)
  const file = findProject(config.cwd)
  const pipeline = file === undefined ? NOTHING : (await loadPipeline(file, config.recipe)).pipeline
  planGraph(pipeline.stages)
  const facts = await probeMachine({
    environment: config.environment,
    root: file === undefined ? config.cwd : dirname(file),
    tools: pipeline.stages.flatMap((stage) => Object.values(stage.tools).map(({ command }) => command)),
    checks: Object.fromEntries(
      Object.entries(pipeline.checks).map(([name, argv]) => [name, argv.map(fillNode)]),
    ),
    files: file === undefined ? [] : [file],
  })
  const findings = [
    ...(file === undefined ? [NO_PROJECT] : []),
    ...diagnose(facts, needsOf(pipeline)),
    await checkStore(config.remote, pipeline.store),
  ]
  if (flags.json) for (const finding of findings) print(JSON.stringify(finding))
  else print(formatFindings(findings))
  return exitOfFindings(findings)
}

const NOTHING: Pipeline = { stages: [], locks: {}, checks: {}, images: [] }

const NO_PROJECT: Finding = {
  state: 'warn',
  what: 'project',
  found: 'there is no pipeline.ts here or above, so nothing is known of what stages need',
  mend: 'start one here: pilot init',
}

function findProject(cwd: string): string | undefined {
  try {
    return findPipeline(cwd)
  } catch (error) {
    if (error instanceof PilotError && error.code === 'no-pipeline') return undefined
    throw error
  }
}

function fillNode(word: string): string {
  return word === '{node}' ? process.execPath : word
}

function needsOf({ stages }: Pipeline): Needs {
  const tools: Record<string, string[]> = {}
  for (const stage of stages) {
    for (const { command } of Object.values(stage.tools)) {
      const line = command.join(' ')
      tools[line] = [...(tools[line] ?? []), stage.name]
    }
  }
  const [largest] = stages.toSorted((a, b) => b.resources.memoryMiB - a.resources.memoryMiB)
  return {
    tools,
    gpu: stages.flatMap(({ name, resources, accelerator }) =>
      resources.gpus > 0 || accelerator.length > 0 ? [name] : [],
    ),
    image: stages.flatMap(({ name, image, isolation }) =>
      image !== undefined || isolation === 'container' ? [name] : [],
    ),
    memory: largest && { mostMiB: largest.resources.memoryMiB, stage: largest.name },
  }
}
