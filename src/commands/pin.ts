// pilot pin and unpin: names under which gc keeps the results of stages, whatever becomes of the runs that made them.

import { basename } from 'node:path'
import type { Flags } from '../config.ts'
import { digestOf } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import { didYouMean } from '../model/near.ts'
import { findStage } from '../plan/graph.ts'
import { formatTable } from '../report/status.ts'
import { listPins, pin, unpin } from '../store/sweep.ts'
import { openSession, print } from './session.ts'

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
  for (const stage of stages) findStage(graph, stage)
  const chosen = stages.length > 0 ? stages : graph.stages.map((stage) => stage.name)
  const keys = chosen.map((stage) => {
    const last = store.lastOf(stage)
    if (last && store.readResult(last.key)) return last.key
    throw new PilotError({
      code: 'no-outputs',
      blame: 'user',
      what: `nothing is kept of stage "${stage}" here, so it cannot be pinned`,
      hint: `bring it about: pilot run --to ${stage}`,
    })
  })
  pin(store, name, keys)
  // Kept from the gc of the store beyond this machine too.
  const { tiers, root } = session.project
  const at = session.now().toISOString()
  await tiers?.putRoot(pinRoot(root, name), {
    schema: 'pilot.root.v1',
    project: basename(root),
    at,
    pin: name,
    keys,
  })
  print(`pinned ${keys.length} results as ${name}`)
  return 0
}

export async function unpinCommand(name: string, flags: Flags): Promise<number> {
  using session = await openSession(flags)
  const { store } = session.project
  if (unpin(store, name)) {
    const { tiers, root } = session.project
    const at = session.now().toISOString()
    await tiers?.putRoot(pinRoot(root, name), {
      schema: 'pilot.root.v1',
      project: basename(root),
      at,
      pin: name,
      keys: [],
    })
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

/** Names of pins are free text, keys of objects are not. */
function pinRoot(root: string, name: string): string {
  return `pin-${basename(root)}-${digestOf(name).slice(0, 16)}`
}
