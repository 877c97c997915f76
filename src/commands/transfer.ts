// pilot push and pilot pull: results of the pipeline to and from the store beyond this machine. Cut anywhere, either is
// resumed by repeating it: what has arrived is not moved again.

import { dryRun } from '../conduct/dry-run.ts'
import { noRemote } from '../conduct/remote.ts'
import type { Flags } from '../config.ts'
import { EXIT_CODES } from '../model/error.ts'
import { findStage } from '../plan/graph.ts'
import { count, formatBytes } from '../report/format.ts'
import { openInterrupts } from './interrupts.ts'
import { openProgress, openSession, print } from './session.ts'

type TransferFlags = Flags & { readonly json?: boolean | undefined }

/** Sends what the stages (all, where none is named) last came to here. */
export async function pushCommand(stages: readonly string[], flags: TransferFlags): Promise<number> {
  using progress = openProgress('sent')
  let totalBytes = 0
  using session = await openSession(flags, [], undefined, (_what, doneBytes) =>
    progress.show({ doneBytes, totalBytes }),
  )
  const { store, graph, tiers } = session.project
  if (!tiers?.isWritable) throw noRemote()
  for (const stage of stages) findStage(graph, stage)
  const chosen = stages.length > 0 ? stages : graph.stages.map(({ name }) => name)
  using interrupts = openInterrupts()
  let sent = 0
  for (const stage of chosen) {
    const last = store.lastOf(stage)
    const result = last && store.lookup(last.key) && store.readResult(last.key)
    if (!result || interrupts.stop.aborted) continue
    totalBytes += Object.values(result.outputs).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    await tiers.send(result, { replace: false, lease: undefined })
    sent++
  }
  const unsent = await tiers.drain(interrupts.stop)
  progress.clear()
  const there = sent - unsent
  if (flags.json) print(JSON.stringify({ type: 'push', store: tiers.name, there, unsent, bytes: totalBytes }))
  else
    print(
      `${count(there, 'result')} in ${tiers.name}, ${formatBytes(totalBytes)}${unsent > 0 ? `; ${unsent} not sent` : ''}`,
    )
  return unsent === 0 ? EXIT_CODES.ok : EXIT_CODES.environment
}

/** Brings the outputs of the stages (all, where none is named) here. */
export async function pullCommand(stages: readonly string[], flags: TransferFlags): Promise<number> {
  using progress = openProgress('fetched')
  let totalBytes = 0
  using session = await openSession(flags, [], undefined, (_what, doneBytes) =>
    progress.show({ doneBytes, totalBytes }),
  )
  const { project } = session
  const { store, graph, tiers } = project
  if (!tiers) throw noRemote()
  for (const stage of stages) findStage(graph, stage)
  const { resolved } = await dryRun(project, { to: stages, from: [], only: [], force: [] })
  const missing: string[] = []
  const wanted = graph.stages.filter(({ name }) => stages.length === 0 || stages.includes(name))
  const found = await Promise.all(
    wanted.map(async ({ name }) => {
      const key = resolved[graph.indexOf.get(name) ?? -1]?.key
      return { name, key, result: key && !store.lookup(key) ? await tiers.find(key) : undefined }
    }),
  )
  for (const { result } of found) {
    for (const { sizeBytes } of Object.values(result?.outputs ?? {})) totalBytes += sizeBytes
  }
  let pulled = 0
  for (const { name, key, result } of found) {
    if (key && store.lookup(key)) continue
    const path = result && (await tiers.fetch(result.tree))
    if (!key || !result || path === undefined) {
      missing.push(name)
      continue
    }
    store.setLatest(name, result.tree)
    const { record } = result
    const at = new Date().toISOString()
    store.recordStage({
      stage: name,
      runId: record.runId,
      key,
      outcome: 'restored',
      wallMs: record.usage.wallMs,
      at,
    })
    pulled++
  }
  progress.clear()
  const here = found.length - missing.length
  if (flags.json) print(JSON.stringify({ type: 'pull', store: tiers.name, here, pulled, missing }))
  else {
    print(`${count(here, 'result')} here, ${pulled} fetched from ${tiers.name}`)
    if (missing.length > 0) print(`not there, or waiting on one that is not: ${missing.join(', ')}`)
  }
  return missing.length === 0 ? EXIT_CODES.ok : EXIT_CODES.environment
}
