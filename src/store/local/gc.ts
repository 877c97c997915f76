// What the steps of gc share: options, roots, the tally, and the one rule of what may go.

import type { Digest } from '../../model/digest.ts'
import type { LocalParts } from '../local.ts'
import type { CollectRows } from '../tally.ts'
import { findLive, type Roots } from './roots.ts'

export interface CollectOptions {
  /** The last so many good runs keep what they used. */
  readonly keepRuns: number
  /** What was used within it stays, whatever the roots say. */
  readonly graceMs: number
  readonly dryRun: boolean
  /** Actions or trees to keep besides the pinned ones. */
  readonly pins?: readonly Digest[]
  /** ms since the epoch. */
  readonly now: () => number
}

/** Why something goes, or stays. */
export type CollectReason =
  | 'unreachable result'
  | 'unreachable tree'
  | 'tree without a row'
  | 'unreachable log'
  | 'old run'
  | 'quarantined'
  | 'left to resume from'
  | 'pinned'
  | 'recent run'
  | 'named by a kept result'
  | 'in use or in grace'

export interface Gc {
  readonly parts: LocalParts
  readonly options: CollectOptions
  readonly roots: Roots
  readonly removed: CollectRows<CollectReason>
  readonly kept: CollectRows<CollectReason>
}

/** What was last used before it may go. Asked anew in each transaction. */
export function cutoff({ parts, options }: Gc): number {
  const { idleSinceMs } = findLive(parts.db, parts.layout, parts.owner)
  return Math.min(options.now() - options.graceMs, idleSinceMs)
}
