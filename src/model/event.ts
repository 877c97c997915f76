// What happens in a run, as one union. The live view, the CI log, the NDJSON stream and the report are folds over it.

import type { Digest } from './digest.ts'
import type { Failure, OutputRecord, Usage } from './result.ts'

/** What became of a stage in a run. */
export type Outcome = 'executed' | 'hit' | 'restored' | 'failed' | 'skipped'

/** What a plan says of a stage before anything runs. */
export type PlanState = 'hit' | 'restore' | 'run' | 'wait' | 'skip'

/** Why a stage is in its plan state, in words for people. */
export interface PlanRow {
  readonly stage: string
  readonly state: PlanState
  readonly reason: string
  readonly actionDigest: Digest | null
}

export type RunEvent =
  | {
      readonly type: 'run-start'
      readonly runId: string
      readonly pipeline: string
      readonly recipe: string | null
      readonly stages: readonly string[]
      readonly jobs: number
      /** ISO 8601, UTC. */
      readonly at: string
    }
  | ({ readonly type: 'stage-plan' } & PlanRow)
  | {
      /** A restored stage whose outputs turned out not to be whole: it is executed. */
      readonly type: 'stage-lost'
      readonly stage: string
      readonly actionDigest: Digest
    }
  | {
      readonly type: 'stage-wait'
      readonly stage: string
      readonly actionDigest: Digest
      /** For whom: `run 7f3a on host-b, since 12:00:03`. */
      readonly holder: string
    }
  | {
      readonly type: 'stage-start'
      readonly stage: string
      readonly actionDigest: Digest
      readonly attempt: number
      readonly log: string
      readonly at: string
    }
  | {
      readonly type: 'stage-output'
      readonly stage: string
      readonly stream: 'stdout' | 'stderr'
      readonly line: string
    }
  | {
      readonly type: 'stage-retry'
      readonly stage: string
      readonly attempt: number
      readonly failure: Failure
      readonly delayMs: number
    }
  | {
      readonly type: 'stage-end'
      readonly stage: string
      readonly outcome: Outcome
      /** null where the stage's inputs never became known. */
      readonly actionDigest: Digest | null
      readonly outputs: Readonly<Record<string, OutputRecord>>
      readonly usage?: Usage
      readonly failure?: Failure
      /** Path of the attempt's log, from the project root. */
      readonly log?: string
      /** Where the stage is declared: `file:line`. */
      readonly where?: string
      /** Why it was skipped. */
      readonly reason?: string
    }
  | {
      readonly type: 'progress'
      readonly what: string
      readonly doneBytes: number
      readonly totalBytes: number
    }
  | { readonly type: 'warning'; readonly code: string; readonly message: string }
  | {
      readonly type: 'run-end'
      readonly exit: number
      readonly executed: number
      readonly hits: number
      readonly restored: number
      readonly failed: number
      readonly skipped: number
      readonly wallMs: number
    }

export type StageEnd = Extract<RunEvent, { type: 'stage-end' }>
export type RunEnd = Extract<RunEvent, { type: 'run-end' }>
