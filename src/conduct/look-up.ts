// Looking a stage up: the digests of its inputs, its action, the key, and what the store keeps under it.

import { join } from 'node:path'
import { hashSource } from '../capture/source.ts'
import { type Action, actionDigest } from '../model/action.ts'
import type { Digest } from '../model/digest.ts'
import type { ResultBrief } from '../model/ports.ts'
import { type KnownInput, toAction } from '../plan/key.ts'
import type { Project } from './project.ts'

/** A stage whose inputs are known. */
export interface Resolved {
  readonly key: Digest
  readonly action: Action
  readonly inputs: Readonly<Record<string, KnownInput>>
  /** What is kept for the action, intact; undefined when it must be executed. */
  readonly result: ResultBrief | undefined
}

/** @param known results of the stages done so far, by index; all dependencies of `index` are among them */
export async function lookUp(
  project: Project,
  known: readonly (ResultBrief | undefined)[],
  index: number,
): Promise<Resolved> {
  const stage = project.graph.stages[index]
  if (!stage) throw new RangeError(`no stage ${index}`)
  const inputs: Record<string, KnownInput> = {}
  for (const name in stage.inputs) {
    const ref = stage.inputs[name]
    if (!ref) continue
    if (ref.from === 'source') {
      inputs[name] = {
        digest: await hashSource(join(project.root, ref.path), ref.kind, project.store.stats),
        origin: ref.path,
      }
    } else {
      const output = known[project.graph.indexOf.get(ref.stage) ?? -1]?.outputs[ref.output]
      if (!output) throw new TypeError(`stage "${stage.name}" was looked up before "${ref.stage}" was done`)
      inputs[name] = { digest: output.digest, origin: output.path }
    }
  }
  const action = toAction(stage, inputs, project.facts)
  const key = actionDigest(action)
  return { key, action, inputs, result: project.store.lookup(key) }
}
