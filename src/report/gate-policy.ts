// What must hold for a gate to pass, as the policy file says it. The schema is of the file's text; what it names is
// checked against the pipeline by the command.

import { z } from 'zod'

const name = z.string().min(1)

/** Lower and upper bound, both included; at least one. */
const bounds = z
  .strictObject({ min: z.number().optional(), max: z.number().optional() })
  .refine(({ min, max }) => min !== undefined || max !== undefined, 'give min, max or both')

const metric = z.strictObject({
  name,
  /** The JSON output it stands in, and the path to it: `by_question.0.adapted`. */
  ...{ stage: name, output: name, field: name },
  /** Path to its `[low, high]` in the same output. */
  interval: name.optional(),
  /** Whether the bounds are held against the value, or against the whole interval: then one that straddles a bound
   *  establishes nothing. */
  judge: z.enum(['value', 'interval']).default('value'),
  /** Bounds of the value itself. */
  ...{ min: z.number().optional(), max: z.number().optional() },
  /** Bounds of the value less the base's, and of the value by the base's. */
  ...{ change: bounds.optional(), ratio: bounds.optional() },
})

export const policySchema = z
  .strictObject({
    /** Stages that must have a result for what they are now. */
    stages: z.union([z.literal('all'), z.array(name)]).default([]),
    /** Criteria of an acceptance verdict: `{ criteria: [{ name, verdict, measured }] }`. */
    acceptance: z
      .strictObject({
        ...{ stage: name, output: name },
        criteria: z.union([z.literal('all'), z.array(name).min(1)]),
      })
      .optional(),
    metrics: z.array(metric).default([]),
  })
  .refine(
    ({ stages, acceptance, metrics }) => stages === 'all' || acceptance || stages.length + metrics.length > 0,
    'it asks for nothing, and nothing would pass it',
  )
  .refine(
    ({ metrics }) => metrics.every((each) => each.judge === 'value' || each.interval !== undefined),
    'a metric judged by its interval needs `interval`',
  )
  .refine(
    ({ metrics }) => new Set(metrics.map((each) => each.name)).size === metrics.length,
    'two metrics have the same name',
  )

export type Policy = z.output<typeof policySchema>
export type MetricPolicy = Policy['metrics'][number]

/** What the gate of another run said with --json, as far as it is compared with. */
export const baseSchema = z.looseObject({ metrics: z.record(z.string(), z.number()) })
