// The schema of the lines that --json prints, as zod and as JSON Schema. The compiler holds it equal to RunEvent.

import { z } from 'zod'
import type { RunEvent } from '../model/event.ts'

const digest = z.string().regex(/^[0-9a-f]{64}$/)
const time = z.iso.datetime()
const amount = z.number().nonnegative()

const output = z.strictObject({
  kind: z.enum(['file', 'tree', 'json']),
  path: z.string(),
  digest,
  sizeBytes: amount,
  files: amount,
})

const usage = z.strictObject({
  wallMs: amount,
  cpuMs: amount,
  peakMemoryBytes: amount,
  method: z.enum(['sampled', 'none']),
})

const failure = z.strictObject({
  class: z.enum([
    'stage',
    'missing-output',
    'timeout',
    'out-of-memory',
    'signal',
    'preempted',
    'infra',
    'cancelled',
    'integrity',
  ]),
  message: z.string(),
  hint: z.string().optional(),
  exitCode: z.int().optional(),
  signal: z.string().optional(),
})

/** One line of `--json`. */
export const eventSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('run-start'),
    runId: z.string(),
    pipeline: z.string(),
    recipe: z.string().nullable(),
    stages: z.array(z.string()),
    jobs: z.int().positive(),
    at: time,
  }),
  z.strictObject({
    type: z.literal('stage-plan'),
    stage: z.string(),
    state: z.enum(['hit', 'restore', 'run', 'wait', 'skip']),
    reason: z.string(),
    actionDigest: digest.nullable(),
  }),
  z.strictObject({ type: z.literal('stage-lost'), stage: z.string(), actionDigest: digest }),
  z.strictObject({
    type: z.literal('stage-wait'),
    stage: z.string(),
    actionDigest: digest,
    holder: z.string(),
  }),
  z.strictObject({
    type: z.literal('stage-start'),
    stage: z.string(),
    actionDigest: digest,
    attempt: z.int().positive(),
    log: z.string(),
    at: time,
  }),
  z.strictObject({
    type: z.literal('stage-output'),
    stage: z.string(),
    stream: z.enum(['stdout', 'stderr']),
    line: z.string(),
  }),
  z.strictObject({
    type: z.literal('stage-retry'),
    stage: z.string(),
    attempt: z.int().positive(),
    failure,
    delayMs: amount,
  }),
  z.strictObject({
    type: z.literal('stage-end'),
    stage: z.string(),
    outcome: z.enum(['executed', 'hit', 'restored', 'failed', 'skipped']),
    actionDigest: digest.nullable(),
    outputs: z.record(z.string(), output),
    usage: usage.optional(),
    failure: failure.optional(),
    log: z.string().optional(),
    where: z.string().optional(),
    reason: z.string().optional(),
  }),
  z.strictObject({ type: z.literal('progress'), what: z.string(), doneBytes: amount, totalBytes: amount }),
  z.strictObject({ type: z.literal('warning'), code: z.string(), message: z.string() }),
  z.strictObject({
    type: z.literal('run-end'),
    exit: z.int(),
    executed: amount,
    hits: amount,
    restored: amount,
    failed: amount,
    skipped: amount,
    wallMs: amount,
  }),
])

/** `T` without brands and readonly, with absent and undefined alike: what JSON can tell apart. */
type Plain<T> = T extends string
  ? T extends { readonly __brand: unknown }
    ? string
    : T
  : T extends readonly (infer E)[]
    ? Plain<E>[]
    : T extends object
      ? { -readonly [K in keyof T]: Plain<Exclude<T[K], undefined>> }
      : T

/** Compiles only while schema and type say the same, field by field. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never
const isSame: Same<Plain<RunEvent>, Plain<z.output<typeof eventSchema>>> = true
void isSame

/** The JSON Schema of one line. */
export function eventJsonSchema(): object {
  return z.toJSONSchema(eventSchema)
}
