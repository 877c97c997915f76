// Inputs as immutable paths: an upstream output stands in the store already; a source of the project is brought there
// once for each content, so that a stage reads what was hashed, whatever is edited meanwhile.

import { statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { importSource } from '../capture/import.ts'
import { hashSource, sourceMode } from '../capture/source.ts'
import type { Digest } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import type { StatCache } from '../model/ports.ts'
import type { Stage } from '../model/stage.ts'
import { treeDigest } from '../model/tree.ts'
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

/** Path of a source's content in the store, brought there where it is not yet. A file becomes a tree of one entry under
 *  its own name: programs that follow the link then still see its extension. */
async function sourcePath(
  { project }: RunContext,
  path: string,
  kind: 'file' | 'tree',
  digest: Digest,
): Promise<string> {
  const { store, root } = project
  const memo = project.imported.get(path)
  if (memo?.digest === digest) return memo.target
  const absolute = join(root, path)
  const inside = kind === 'file' ? basename(path) : ''
  let kept = store.openTree(kind === 'tree' ? digest : fileTree(absolute, digest))
  if (!kept) {
    const into = store.makeTemp('import')
    kept = store.adoptTree(await importSource({ path: absolute, kind, expected: digest, into }), into)
  }
  const target = join(kept, inside)
  project.imported.set(path, { digest, target })
  return target
}

/** Digest of the one-entry tree that a source file is kept as. */
function fileTree(path: string, digest: Digest): Digest {
  const { mode, size } = statSync(path)
  return treeDigest([{ type: 'file', path: basename(path), mode: sourceMode(mode), digest, sizeBytes: size }])
}

/** Hashes the stage's sources once more. @throws PilotError `input-changed` naming the input that was edited meanwhile */
export async function checkSources({ project }: RunContext, stage: Stage, resolved: Resolved): Promise<void> {
  // Sources are hashed once a run for each cache they are asked through: another face of it makes them be looked at anew.
  const { stats } = project.store
  const afresh: StatCache = {
    get: (path, stat) => stats.get(path, stat),
    set: (path, stat, digest) => stats.set(path, stat, digest),
  }
  for (const name in stage.inputs) {
    const ref = stage.inputs[name]
    if (ref?.from !== 'source') continue
    const now = await hashSource(join(project.root, ref.path), ref.kind, afresh)
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
