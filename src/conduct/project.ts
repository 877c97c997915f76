// A project opened for use: its pipeline as a graph, the facts that go into keys, its store. Composition only.

import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from '../config.ts'
import { findPipeline, loadPipeline } from '../declare/load.ts'
import { acceleratorFacts, gpuIds, hostFingerprint, platformOf, toolVersion } from '../execute/fingerprint.ts'
import type { Digest } from '../model/digest.ts'
import type { LocalStore } from '../model/ports.ts'
import type { HostFingerprint } from '../model/result.ts'
import type { Stage } from '../model/stage.ts'
import { type Graph, planGraph } from '../plan/graph.ts'
import { type Facts, toolKey } from '../plan/key.ts'
import type { Capacity } from '../plan/schedule.ts'
import { openLocalStore } from '../store/local.ts'

export interface Project extends Disposable {
  readonly config: Config
  /** Real path of the folder that holds the pipeline file. */
  readonly root: string
  /** Name of the pipeline file. */
  readonly file: string
  readonly recipe: string | null
  readonly graph: Graph
  readonly facts: Facts
  readonly capacity: Capacity
  readonly host: HostFingerprint
  readonly store: LocalStore
  /** For what is derived on this machine and must not travel, such as virtual environments. */
  readonly machineDir: string
  readonly pilotVersion: string
  /** Sources brought into the store in this process, by path. */
  readonly imported: Map<string, { readonly digest: Digest; readonly target: string }>
}

export interface OpenOptions {
  readonly runId: string
  /** A tree was found damaged and set aside. */
  readonly onWarning: (code: string, message: string) => void
}

/** Loads and checks the pipeline, and opens the store beside it. @throws PilotError for whatever is wrong with either */
export async function openProject(config: Config, { runId, onWarning }: OpenOptions): Promise<Project> {
  const path = findPipeline(config.cwd)
  const root = dirname(path)
  const { pipeline, recipe } = await loadPipeline(path, config.recipe)
  const graph = planGraph(pipeline.stages)
  const facts = await gatherFacts(config, graph)
  const host = hostFingerprint()
  const store = openLocalStore({ root: join(root, 'artifacts'), runId, onWarning })
  return {
    config,
    root,
    file: path.slice(root.length + 1),
    recipe,
    graph,
    facts,
    capacity: {
      jobs: config.jobs,
      cpus: config.cpus,
      memoryMiB: config.memoryMiB,
      gpuIds: graph.stages.some((stage) => stage.resources.gpus > 0) ? await gpuIds(config.environment) : [],
    },
    host,
    store,
    machineDir: join(store.root, 'machine'),
    pilotVersion: readVersion(),
    imported: new Map(),
    [Symbol.dispose]: () => store[Symbol.dispose](),
  }
}

async function gatherFacts(config: Config, graph: Graph): Promise<Facts> {
  const tools = new Map<string, string>()
  let needsAccelerator = false
  for (const stage of graph.stages) {
    needsAccelerator ||= stage.accelerator.length > 0
    await addTools(tools, stage)
  }
  return {
    platform: platformOf(),
    environment: config.environment,
    tools,
    accelerator: needsAccelerator ? await acceleratorFacts() : {},
  }
}

async function addTools(tools: Map<string, string>, stage: Stage): Promise<void> {
  for (const name in stage.tools) {
    const command = stage.tools[name]?.command ?? []
    const key = toolKey(command)
    if (!tools.has(key)) tools.set(key, await toolVersion(command))
  }
}

let version: string | undefined

/** Version of this package: two folders up in the checkout, three in the compiled package. */
function readVersion(): string {
  for (const up of ['../../package.json', '../../../package.json']) {
    if (version !== undefined) break
    try {
      const manifest: unknown = JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8'))
      if (typeof manifest === 'object' && manifest !== null && 'version' in manifest)
        version = String(manifest.version)
    } catch {
      // Not there: the other layout.
    }
  }
  return version ?? '0.0.0'
}
