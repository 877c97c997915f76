// Looking a stage up: the digests of its inputs, its action, the key, and what the store keeps under it.

import { type Action, actionDigest } from '../model/action.ts'
import type { Digest } from '../model/digest.ts'
import type { ResultBrief } from '../model/ports.ts'
import type { InputRef } from '../model/stage.ts'
import { type KnownInput, toAction } from '../plan/key.ts'
import type { Project } from './project.ts'
import { type Sources, sourceId } from './sources.ts'

/** A stage whose inputs are known. */
export interface Resolved {
  readonly key: Digest
  readonly action: Action
  readonly inputs: Readonly<Record<string, KnownInput>>
  /** What is kept for the action, intact; undefined when it must be executed. */
  readonly result: ResultBrief | undefined
}

export interface Known {
  readonly project: Project
  readonly sources: Sources
  /** The results of stages that are done, by index: all that the stage depends on are among them. */
  readonly known: readonly (ResultBrief | undefined)[]
}

export function lookUp(so: Known, index: number): Resolved {
  const { project } = so
  const stage = project.graph.stages[index]
  if (!stage) throw new RangeError(`no stage ${index}`)
  const inputs: Record<string, KnownInput> = {}
  for (const name in stage.inputs) {
    const ref = stage.inputs[name]
    if (ref) inputs[name] = knownInput(so, ref)
  }
  const action = toAction(stage, inputs, project.facts)
  const key = actionDigest(action)
  return { key, action, inputs, result: project.store.lookup(key) }
}

/** What the stores beyond this machine keep for a looked-up action; with `isNeeded` its tree is brought here, and one that
 *  is not whole is no result. */
export async function findRemote(
  { tiers }: Project,
  { key }: Resolved,
  isNeeded: boolean,
): Promise<ResultBrief | undefined> {
  const result = await tiers?.find(key)
  if (!result) return undefined
  if (isNeeded && (await tiers?.fetch(result.tree)) === undefined) return undefined
  return { key, tree: result.tree, outputs: result.outputs }
}

function knownInput({ project, sources, known }: Known, ref: InputRef): KnownInput {
  if (ref.from === 'source') {
    const digest = sources.get(sourceId(ref))
    if (!digest) throw new TypeError(`source ${ref.path} was not read`)
    return { digest, origin: ref.path }
  }
  const output = known[project.graph.indexOf.get(ref.stage) ?? -1]?.outputs[ref.output]
  if (!output) throw new TypeError(`stage "${ref.stage}" was read before it was done`)
  return { digest: output.digest, origin: output.path }
}
