// The sources that the selected stages read, hashed before anything runs: what is missing or unreadable is told then,
// and a whole run sees one state of each.

import { join } from 'node:path'
import { hashSource } from '../capture/source.ts'
import type { Digest } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import type { InputRef, Stage } from '../model/stage.ts'
import { placeOf } from '../plan/name.ts'
import type { Role } from '../plan/select.ts'
import type { Project } from './project.ts'

/** Digest of each source, by `sourceId`. */
export type Sources = ReadonlyMap<string, Digest>

type SourceRef = Extract<InputRef, { from: 'source' }>

/** A file and a folder of one path are two sources. */
export function sourceId(ref: SourceRef): string {
  return ref.kind === 'tree' ? `tree ${ref.path}` : `file ${ref.path}`
}

/** @throws PilotError naming the stage and the input, for the first source that cannot be read */
export async function readSources(project: Project, roles: readonly Role[]): Promise<Sources> {
  const sources = new Map<string, Digest>()
  const pending: Promise<void>[] = []
  for (const [index, stage] of project.graph.stages.entries()) {
    if (roles[index] === 'none') continue
    for (const name in stage.inputs) {
      const ref = stage.inputs[name]
      if (ref?.from !== 'source' || sources.has(sourceId(ref))) continue
      const digest = hashSource(join(project.root, ref.path), ref.kind, project.store.stats)
      if (typeof digest === 'string') {
        sources.set(sourceId(ref), digest)
      } else {
        pending.push(
          digest.then(
            (known) => void sources.set(sourceId(ref), known),
            (error: unknown) => {
              throw inputError(error, stage, name, ref)
            },
          ),
        )
      }
    }
  }
  await Promise.all(pending)
  return sources
}

function inputError(error: unknown, stage: Stage, name: string, ref: SourceRef): unknown {
  if (!(error instanceof PilotError)) return error
  return new PilotError({
    code: error.code,
    blame: error.blame,
    what: `input "${name}" of stage "${stage.name}" (${ref.path}): ${error.message}`,
    where: placeOf(stage) ?? error.where,
    hint: error.hint,
    cause: error.cause,
  })
}
