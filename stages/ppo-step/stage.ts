import { defineStage, file, tree } from 'hessian-pilot'
import { z } from 'zod'
import { jsonArgument, PYTHON_ENV, PYTHON_INPUTS, pythonArgv } from '../python/program.ts'

const count = z.int().positive()

/** How the step is taken. */
export const ppoStepParams = z.strictObject({
  seed: z.int().nonnegative(),
  /** Questions, and rollouts of each. */
  ...{ groups: count, samples: count },
  /** Rollouts at the same time. */
  workers: count,
  /** Budget of one rollout. */
  ...{ turns: count, max_tokens: count, timeout_seconds: count },
  ...{ epochs: count, learning_rate: z.number().positive() },
  ...{ clip: z.number().positive(), kl_weight: z.number().nonnegative() },
  /** Fewer complete groups than this are an error. */
  min_groups: count,
  /** Which of several runs with the same parameters this is; changes nothing in it. */
  repetition: count,
})

/** One PPO update: rollouts of the calculator harness through the real gateway and controller on loopback, rewards by
 *  its event endpoint. `record` keeps what happened, raw; `policy` is a function of base, questions and parameters. */
export const ppoStep = defineStage({
  name: 'ppo-step',
  folder: import.meta.dirname,
  params: ppoStepParams,
  inputs: { ...PYTHON_INPUTS, upstream: tree(), policy: tree(), questions: tree() },
  outputs: { policy: tree('policy'), record: tree('record'), metrics: file('metrics.json') },
  run: (context) =>
    pythonArgv(context, 'ppo_step.py', {
      params: jsonArgument(context.params),
      base: context.inputs.policy,
      questions: context.inputs.questions,
      upstream: context.inputs.upstream,
      out: context.outputs.policy,
      record: context.outputs.record,
      metrics: context.outputs.metrics,
    }),
  env: PYTHON_ENV,
  resources: { cpus: 2, memoryMiB: 4096 },
  timeoutMs: 20 * 60_000,
})
