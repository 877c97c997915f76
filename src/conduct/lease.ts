// Executing under a lease: other machines then wait for this one, and find what it made.

import { setTimeout as delay } from 'node:timers/promises'
import type { RunEvent } from '../model/event.ts'
import type { ResultBrief } from '../model/ports.ts'
import type { Stage } from '../model/stage.ts'
import type { Lease } from '../store/remote/leases.ts'
import type { RunContext } from './context.ts'
import { findRemote, type Resolved } from './look-up.ts'

export type Leased =
  | { readonly type: 'ours'; readonly lease: Lease | undefined }
  | { readonly type: 'made'; readonly result: ResultBrief }
  | { readonly type: 'stopped' }

/** Waits until the action is ours, or another machine has made it. Without a store that knows leases it is ours. */
export async function takeLease(
  { project, stop }: RunContext,
  stage: Stage,
  resolved: Resolved,
  isForced: boolean,
  report: (event: RunEvent) => void,
): Promise<Leased> {
  const { tiers } = project
  if (!tiers) return { type: 'ours', lease: undefined }
  for (let told = false; !stop.aborted; ) {
    const answer = await tiers.claim(resolved.key)
    if (answer.type === 'none') return { type: 'ours', lease: undefined }
    // Made between our look-up and our claim, or while we waited. Who forces wants it made anew, but not while another does.
    const made = isForced ? undefined : await findRemote(project, resolved.key, false)
    if (made) {
      if (answer.type === 'claimed') await answer.lease.release().catch(() => undefined)
      return { type: 'made', result: made }
    }
    if (answer.type === 'claimed') return { type: 'ours', lease: answer.lease }
    if (!told) {
      const holder = `${answer.holder}, since ${answer.since}`
      report({ type: 'stage-wait', stage: stage.name, actionDigest: resolved.key, holder })
    }
    told = true
    await delay(Math.min(1_000, tiers.beatMs), undefined, { signal: stop }).catch(() => undefined)
  }
  return { type: 'stopped' }
}
