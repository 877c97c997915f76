// A project opened for use: its pipeline as a graph, the facts that go into keys, its store. Composition only.

import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { Config } from '../config.ts'
import { findPipeline, loadPipeline } from '../declare/load.ts'
import { acceleratorFacts, hostFingerprint, platformOf, toolVersion } from '../execute/fingerprint.ts'
import { gpuIds } from '../execute/gpus.ts'
import { type Digest, shortDigest } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import type { LocalStore } from '../model/ports.ts'
import type { HostFingerprint } from '../model/result.ts'
import type { Pipeline, Stage } from '../model/stage.ts'
import { type Graph, planGraph } from '../plan/graph.ts'
import { type Facts, toolKey } from '../plan/key.ts'
import { placeOf } from '../plan/name.ts'
import type { Capacity } from '../plan/schedule.ts'
import { type Damage, openLocalStore } from '../store/local.ts'
import type { Tiers } from '../store/tiers.ts'
import { openRemoteTiers } from './remote.ts'

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
  /** The stores beyond this machine, where there are any. */
  readonly tiers: Tiers | undefined
  /** The store that the pipeline names. */
  readonly remoteAddress: string | undefined
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
  /** How far transfers are. */
  readonly onProgress?: ((what: string, doneBytes: number, totalBytes: number) => void) | undefined
}

/** Loads and checks the pipeline, and opens the store beside it. @throws PilotError for whatever is wrong with either */
export async function openProject(config: Config, options: OpenOptions): Promise<Project> {
  const path = findPipeline(config.cwd)
  const { pipeline, recipe } = await loadPipeline(path, config.recipe)
  return assembleProject(config, { root: dirname(path), file: basename(path), pipeline, recipe }, options)
}

export interface Loaded {
  readonly root: string
  readonly file: string
  readonly pipeline: Pipeline
  readonly recipe: string | null
}

/** Refuses a stage that asks for more isolation than there is, before anything runs: it must not be believed to have
 *  had it. */
function requireIsolation({ stages }: Graph): void {
  const asking = stages.find(({ isolation }) => isolation === 'sandbox' || isolation === 'traced')
  if (!asking) return
  throw new PilotError({
    code: 'isolation-unavailable',
    blame: 'environment',
    what: `stage "${asking.name}" asks for isolation "${asking.isolation}", and this version has "workdir" and "container" only`,
    where: placeOf(asking),
    hint: 'leave `isolation` out, or give the stage an image',
  })
}

/** A project from a pipeline that is loaded already. */
export async function assembleProject(
  config: Config,
  loaded: Loaded,
  options: OpenOptions,
): Promise<Project> {
  const graph = planGraph(loaded.pipeline.stages)
  requireIsolation(graph)
  const facts = await gatherFacts(config, graph)
  const { runId, onWarning } = options
  const store = openLocalStore({
    root: join(loaded.root, 'artifacts'),
    runId,
    host: hostname(),
    onDamage: (digest, found) => onWarning('damaged', formatDamage(digest, found)),
    onWarning: (message) => onWarning('store', message),
  })
  const pilotVersion = readVersion()
  const tiers = await openRemoteTiers({ config, loaded, local: store, ...options }).catch(
    (error: unknown) => {
      store[Symbol.dispose]()
      throw error
    },
  )
  return {
    config,
    root: loaded.root,
    file: loaded.file,
    recipe: loaded.recipe,
    graph,
    facts,
    capacity: {
      jobs: config.jobs,
      cpus: config.cpus,
      memoryMiB: config.memoryMiB,
      gpuIds: graph.stages.some((stage) => stage.resources.gpus > 0) ? await gpuIds(config.environment) : [],
    },
    host: hostFingerprint(),
    store,
    tiers,
    remoteAddress: loaded.pipeline.store,
    machineDir: join(store.root, 'machine'),
    pilotVersion,
    imported: new Map(),
    [Symbol.dispose]: () => store[Symbol.dispose](),
  }
}

async function gatherFacts(config: Config, graph: Graph): Promise<Facts> {
  const tools = new Map<string, string>()
  let needsAccelerator = false
  for (const stage of graph.stages) {
    needsAccelerator ||= stage.accelerator.length > 0
    await addTools(tools, stage, config)
  }
  return {
    platform: platformOf(),
    environment: config.environment,
    tools,
    accelerator: (needsAccelerator && (await acceleratorFacts(config.environment))) || {},
  }
}

async function addTools(tools: Map<string, string>, stage: Stage, { environment }: Config): Promise<void> {
  for (const name in stage.tools) {
    const command = stage.tools[name]?.command ?? []
    const key = toolKey(command)
    if (!tools.has(key)) tools.set(key, await toolVersion(command, environment))
  }
}

function formatDamage(digest: Digest, found: Damage): string {
  return `tree ${shortDigest(digest)} was changed by hand and is set aside: ${found.path}, expected ${found.expected}, got ${found.got}`
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
