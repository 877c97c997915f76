import { defineStage, file, tree } from 'hessian-pilot'
import { z } from 'zod'
import { jsonArgument, PYTHON_ENV, PYTHON_INPUTS, pythonArgv } from '../python/program.ts'

const count = z.int().positive()

/** How the baseline is made. */
export const baseParams = z.strictObject({
  seed: z.int().nonnegative(),
  /** Questions in each set. */
  ...{ train: count, held_out: count, retention: count },
  /** Shape of the transformer. */
  ...{ context: count, width: count, layers: count, heads: count },
  /** Of the warm start: steps of Adam on batches of so many demonstrations. */
  ...{ steps: count, batch: count, learning_rate: z.number().positive() },
})

/** The frozen baseline: tokenizer, chat template, a tiny transformer warm-started on demonstrations, and the questions
 *  split into training, held-out and retention sets. The sha256 of its manifest is its policy revision. */
export const base = defineStage({
  name: 'base',
  folder: import.meta.dirname,
  params: baseParams,
  inputs: PYTHON_INPUTS,
  outputs: { policy: tree('policy'), questions: tree('questions'), report: file('report.json') },
  run: (context) =>
    pythonArgv(context, 'base.py', {
      params: jsonArgument(context.params),
      out: context.outputs.policy,
      questions: context.outputs.questions,
      report: context.outputs.report,
    }),
  env: PYTHON_ENV,
  resources: { cpus: 2, memoryMiB: 2048 },
  timeoutMs: 10 * 60_000,
})
