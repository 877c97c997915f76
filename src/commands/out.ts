// pilot out STAGE: where its outputs are, and writable copies of them.

import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { toStatement } from '../capture/provenance.ts'
import type { Project } from '../conduct/project.ts'
import type { Flags } from '../config.ts'
import type { Digest } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import type { LocalStore, ResultBrief } from '../model/ports.ts'
import { findStage } from '../plan/graph.ts'
import { openSession, print } from './session.ts'

interface OutFlags extends Flags {
  readonly copy?: string | undefined
  readonly provenance?: boolean | undefined
  readonly json?: boolean | undefined
}

/** Who vouches for a statement made here: pilot on this machine, which nobody has signed for. */
const BUILDER = 'urn:hessian-pilot:local'

export async function outCommand(name: string, flags: OutFlags): Promise<number> {
  using session = await openSession(flags)
  const { project } = session
  findStage(project.graph, name)
  const last = project.store.lastOf(name)
  const result = last && (project.store.lookup(last.key) ?? (await bringHere(project, last.key)))
  const folder = result && project.store.openTree(result.tree)
  if (!result || !folder) {
    throw new PilotError({
      code: 'no-outputs',
      blame: 'user',
      what: `nothing is kept of stage "${name}" here`,
      hint: `bring it about: pilot run --to ${name}`,
    })
  }
  if (flags.provenance) {
    const made = project.store.readResult(result.key)
    if (made) print(JSON.stringify(toStatement(made, BUILDER), null, 2))
    return 0
  }
  if (flags.copy !== undefined) {
    await copyOut(project.store, result.tree, resolve(flags.copy))
    print(resolve(flags.copy))
    return 0
  }
  const rows = Object.entries(result.outputs).map(([output, record]) => ({
    output,
    path: relative(process.cwd(), join(project.store.root, 'latest', name, record.path)),
    digest: record.digest,
    sizeBytes: record.sizeBytes,
    files: record.files,
  }))
  if (flags.json) for (const row of rows) print(JSON.stringify(row))
  else for (const row of rows) print(row.path)
  return 0
}

/** Restored outputs that no stage has needed yet are fetched now that somebody asks for them. */
async function bringHere({ store, tiers }: Project, key: Digest): Promise<ResultBrief | undefined> {
  const result = await tiers?.find(key)
  if (!result || (await tiers?.fetch(result.tree)) === undefined) return undefined
  return store.lookup(key)
}

async function copyOut(store: Pick<LocalStore, 'fetchTree'>, tree: Digest, into: string): Promise<void> {
  if (existsSync(into)) {
    throw new PilotError({
      code: 'already-there',
      blame: 'user',
      what: `${into} exists already, and nothing is overwritten`,
      hint: 'name a folder that does not exist',
    })
  }
  mkdirSync(dirname(into), { recursive: true })
  if (!(await store.fetchTree(tree, into))) {
    throw new PilotError({
      code: 'no-outputs',
      blame: 'environment',
      what: 'the outputs were damaged and have been set aside',
      hint: 'run again: their producer will be executed anew',
    })
  }
}
