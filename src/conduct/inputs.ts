// Inputs as immutable paths: an upstream output stands in the store already; a source of the project is brought there
// once for each content, so that a stage reads what was hashed, whatever is edited meanwhile.

import { basename, join } from 'node:path'
import { importSource } from '../capture/import.ts'
import { hashSource } from '../capture/source.ts'
import { PilotError } from '../model/error.ts'
import type { Stage } from '../model/stage.ts'
import { toTree } from '../model/tree.ts'
import { nameInWorkdir } from '../plan/key.ts'
import type { RunContext } from './context.ts'
import type { Resolved } from './look-up.ts'

export interface InputTarget {
  readonly name: string
  /** Name in `in/`. */
  readonly as: string
  /** Absolute path, within an immutable tree. */
  readonly target: string
}

/** Where each input of the stage stands. @throws PilotError `input-changed`, `input-gone` */
export async function inputTargets(
  context: RunContext,
  stage: Stage,
  resolved: Resolved,
): Promise<readonly InputTarget[]> {
  const targets: InputTarget[] = []
  for (const name in stage.inputs) {
    const ref = stage.inputs[name]
    const input = resolved.inputs[name]
    if (!ref || !input) continue
    const target =
      ref.from === 'stage'
        ? upstreamPath(context, ref.stage, ref.output)
        : await sourcePath(context, ref.path, ref.kind === 'tree' ? 'tree' : 'file', input.digest)
    targets.push({ name, as: nameInWorkdir(name, ref.kind, input.origin), target })
  }
  return targets
}

function upstreamPath({ project, known }: RunContext, producer: string, output: string): string {
  const result = known[project.graph.indexOf.get(producer) ?? -1]
  const path = result && project.store.openTree(result.tree)
  const record = result?.outputs[output]
  if (path && record) return join(path, record.path)
  throw new PilotError({
    code: 'input-gone',
    blame: 'environment',
    what: `output "${output}" of stage "${producer}" was there and is gone`,
    hint: 'run again: its producer will be executed anew',
  })
}

/** A file becomes a tree of one entry under its own name; programs that follow the link then still see its extension. */
async function sourcePath(
  { project }: RunContext,
  path: string,
  kind: 'file' | 'tree',
  digest: Resolved['key'],
): Promise<string> {
  const { store, root } = project
  const memo = project.imported.get(path)
  if (memo?.digest === digest) return memo.target
  const absolute = join(root, path)
  const inside = kind === 'file' ? basename(path) : ''
  const kept = kind === 'tree' ? store.openTree(digest) : undefined
  const target = join(kept ?? (await bringIn()), inside)
  project.imported.set(path, { digest, target })
  return target

  async function bringIn(): Promise<string> {
    const { tree, folder } = await importSource(absolute, kind, store.makeTemp('import'), digest)
    return store.adoptTree(toTree(tree.entries), folder)
  }
}

/** Hashes the stage's sources once more. @throws PilotError `input-changed` naming the input that was edited meanwhile */
export async function checkSources({ project }: RunContext, stage: Stage, resolved: Resolved): Promise<void> {
  for (const name in stage.inputs) {
    const ref = stage.inputs[name]
    if (ref?.from !== 'source') continue
    const now = await hashSource(join(project.root, ref.path), ref.kind, project.store.stats)
    if (now !== resolved.inputs[name]?.digest) throw changedError(stage, `source "${ref.path}"`)
  }
}

export function changedError(stage: Stage, what: string): PilotError {
  return new PilotError({
    code: 'input-changed',
    blame: 'environment',
    what: `${what} changed while stage "${stage.name}" ran, so its outputs were not kept`,
    hint: 'run again',
  })
}
