// What pilot and its guard say to each other: one JSON object a line, in both directions over one pipe.
// Both sides are always of the same version: one starts the other.

import type { Usage } from '../../model/result.ts'
import type { Outside } from './outside.ts'

/** Pilot to guard. */
export type GuardOrder =
  | ({ readonly type: 'start' } & StartOrder)
  /** `term`: TERM to the group, KILL after the grace. `kill`: KILL at once. */
  | { readonly type: 'stop'; readonly id: number; readonly how: 'term' | 'kill'; readonly graceMs: number }
  /** All that a job printed is read, and its pipes may serve another. */
  | { readonly type: 'drained'; readonly id: number }
  /** A temporary folder of pilot's, to be removed when pilot dies. */
  | { readonly type: 'folder'; readonly path: string }

export interface StartOrder {
  readonly id: number
  readonly argv: readonly string[]
  /** Absolute, no link in it. */
  readonly cwd: string
  readonly environment: Readonly<Record<string, string>>
  /** Value of the variable that marks every process of the job. */
  readonly marker: string
  /** Named pipes for what the job prints. */
  readonly stdout: string
  readonly stderr: string
  /** Ended with the job when the job is stopped or killed. */
  readonly outside?: Outside | undefined
}

/** Guard to pilot: once for each job, when no process of it is left; a fault before the guard dies of it. */
export type GuardReport =
  | {
      readonly type: 'ended'
      readonly id: number
      readonly exitCode: number | null
      readonly signal: NodeJS.Signals | null
      readonly usage: Usage
      /** Pids that KILL did not end. */
      readonly survivors: readonly number[]
    }
  | { readonly type: 'unstarted'; readonly id: number; readonly code: string; readonly message: string }
  | { readonly type: 'fault'; readonly message: string }
