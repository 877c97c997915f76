// pilot pin and unpin: names under which gc keeps the results of stages, whatever becomes of the runs that made them.

import { basename } from 'node:path'
import type { Flags } from '../config.ts'
import { type Digest, digestOf } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import { didYouMean } from '../model/near.ts'
import { formatTable } from '../report/status.ts'
import { listPins, pin, unpin } from '../store/sweep.ts'
import { chooseStages, nothingKept } from './kept.ts'
import { openSession, print, type Session } from './session.ts'

/** Pins what the stages (all, where none is named) last came to; without a name lists the pins. */
export async function pinCommand(
  name: string | undefined,
  stages: readonly string[],
  flags: Flags,
): Promise<number> {
  using session = await openSession(flags)
  const { store, graph } = session.project
  if (name === undefined) {
    const rows = [...listPins(store)].map(([pinned, digests]) => [pinned, `${digests.length} results`])
    print(rows.length > 0 ? formatTable(rows) : 'nothing is pinned')
    return 0
  }
  const keys = chooseStages(graph, stages).map((stage) => {
    const last = store.lastOf(stage)
    if (last && store.readResult(last.key)) return last.key
    throw nothingKept(stage, ', so it cannot be pinned')
  })
  pin(store, name, keys)
  await pinBeyond(session, name, keys)
  print(`pinned ${keys.length} results as ${name}`)
  return 0
}

export async function unpinCommand(name: string, flags: Flags): Promise<number> {
  using session = await openSession(flags)
  const { store } = session.project
  if (unpin(store, name)) {
    await pinBeyond(session, name, [])
    print(`unpinned ${name}`)
    return 0
  }
  throw new PilotError({
    code: 'no-pin',
    blame: 'user',
    what: `nothing is pinned as "${name}"${didYouMean(name, listPins(store).keys())}`,
    hint: 'list the pins: pilot pin',
  })
}

/** The same pin for the gc of the store beyond this machine; one without keys keeps nothing. */
async function pinBeyond({ project, now }: Session, name: string, keys: readonly Digest[]): Promise<void> {
  const owner = basename(project.root)
  // Names of pins are free text, keys of objects are not.
  const rootName = `pin-${owner}-${digestOf(name).slice(0, 16)}`
  await project.tiers?.putRoot(rootName, { project: owner, at: now().toISOString(), pin: name, keys })
}
