// What an executed action left: the action result. One is kept for each action digest; failed attempts are
// recorded with their run and never served.

import type { Action } from './action.ts'
import type { Digest } from './digest.ts'
import type { ContentKind, Isolation } from './stage.ts'

export const RESULT_SCHEMA = 'pilot.result.v1'

export interface OutputRecord {
  readonly kind: ContentKind
  /** Path within the result's tree. */
  readonly path: string
  /** Of a file, its content; of a tree, its entries. Consumers are keyed by it. */
  readonly digest: Digest
  readonly sizeBytes: number
  readonly files: number
}

/** What the whole process tree of an attempt used. */
export interface Usage {
  readonly wallMs: number
  readonly cpuMs: number
  /** Largest sum of resident memory seen over the process tree, in bytes. */
  readonly peakMemoryBytes: number
  /** How it was measured: `sampled` from the process table, or `none` where the system offers nothing. */
  readonly method: 'sampled' | 'none'
}

/** The machine a result was made on. Recorded, never in a key. */
export interface HostFingerprint {
  readonly os: string
  readonly kernel: string
  readonly arch: string
  readonly libc: string
  readonly cpu: string
  readonly cpus: number
  readonly memoryBytes: number
  /** Accelerator driver, or null where there is none. */
  readonly driver: string | null
}

export interface LogRecord {
  /** Of the kept text, after redaction and capping. */
  readonly digest: Digest
  readonly sizeBytes: number
  /** Lines dropped between head and tail, 0 where the whole log is kept. */
  readonly droppedLines: number
}

/** All that is known of one attempt, whether it succeeded or not. */
export interface AttemptRecord {
  readonly stage: string
  readonly attempt: number
  readonly runId: string
  /** ISO 8601, UTC. */
  readonly startedAt: string
  readonly usage: Usage
  readonly isolation: Isolation
  /** argv as started, placeholders filled in, secrets redacted. */
  readonly argv: readonly string[]
  /** The environment given, secrets redacted. */
  readonly environment: Readonly<Record<string, string>>
  /** Image digest, or null: then `host` says where it ran. */
  readonly image: string | null
  /** Digest of the image's configuration: under one digest an image may have one for each platform. */
  readonly imageConfig?: string
  /** The image that pilot itself was said to run in (PILOT_IMAGE_DIGEST). Claimed, never checked. */
  readonly claimedImage?: string
  readonly host: HostFingerprint
  readonly log: LogRecord | null
  readonly pilotVersion: string
  readonly nodeVersion: string
}

export interface ActionResult {
  readonly schema: typeof RESULT_SCHEMA
  readonly actionDigest: Digest
  readonly action: Action
  /** Digest of the whole output folder. */
  readonly tree: Digest
  readonly outputs: Readonly<Record<string, OutputRecord>>
  readonly record: AttemptRecord
}

/** Why an attempt did not give a result. Only `preempted` and `infra` are retried by default. */
export type FailureClass =
  | 'stage'
  | 'missing-output'
  | 'timeout'
  | 'out-of-memory'
  | 'signal'
  | 'preempted'
  | 'infra'
  | 'cancelled'
  | 'integrity'

export interface Failure {
  readonly class: FailureClass
  /** One sentence, without the final full stop. */
  readonly message: string
  readonly hint?: string | undefined
  readonly exitCode?: number | undefined
  readonly signal?: string | undefined
}
