import { defineStage, file, json, tree } from 'hessian-pilot'
import { z } from 'zod'
import { jsonArgument, PYTHON_ENV, PYTHON_INPUTS, pythonArgv } from '../python/program.ts'

const count = z.int().positive()

/** What both policies are evaluated with. */
export const evaluationParams = z.strictObject({
  seed: z.int().nonnegative(),
  /** Rollouts of each question, and rollouts at the same time. */
  ...{ samples: count, workers: count },
  /** Budget of one rollout. */
  ...{ turns: count, max_tokens: count, timeout_seconds: count },
})

/** One policy on the held-out questions. Used for baseline and adapted with the same parameters: their budgets match. */
export const evaluatePolicy = defineStage({
  name: 'evaluate-policy',
  folder: import.meta.dirname,
  params: evaluationParams,
  inputs: { ...PYTHON_INPUTS, upstream: tree(), policy: tree(), questions: tree() },
  outputs: { record: tree('record') },
  run: (context) =>
    pythonArgv(context, 'evaluate_policy.py', {
      params: jsonArgument(context.params),
      policy: context.inputs.policy,
      questions: context.inputs.questions,
      upstream: context.inputs.upstream,
      out: context.outputs.record,
    }),
  env: PYTHON_ENV,
  resources: { cpus: 1, memoryMiB: 2048 },
  timeoutMs: 20 * 60_000,
})

/** What `evaluate` says; `by_question` and the rest stand in the file. */
const verdict = z.looseObject({
  summary: z.string(),
  verdict: z.enum(['improved', 'worse', 'no measurable change']),
  difference: z.number(),
  interval: z.tuple([z.number(), z.number()]),
})

/** Of the bootstrap. */
export const evaluateParams = z.strictObject({
  seed: z.int().nonnegative(),
  resamples: count,
  confidence: z.number().gt(0.5).lt(1),
})

/** Paired differences of the two evaluations, with a bootstrap interval by question, and the verdict. */
export const evaluate = defineStage({
  name: 'evaluate',
  folder: import.meta.dirname,
  params: evaluateParams,
  inputs: {
    ...PYTHON_INPUTS,
    baseline: tree(),
    adapted: tree(),
    questions: tree(),
    /** Of `reload`: a checkpoint that does not reload is not evaluated. */
    reload: file(),
  },
  outputs: { verdict: json('verdict.json', verdict) },
  run: (context) =>
    pythonArgv(context, 'evaluate.py', {
      params: jsonArgument(context.params),
      baseline: context.inputs.baseline,
      adapted: context.inputs.adapted,
      questions: context.inputs.questions,
      reload: context.inputs.reload,
      out: context.outputs.verdict,
    }),
  env: PYTHON_ENV,
  timeoutMs: 10 * 60_000,
})
