import { defineStage, file, tree } from 'hessian-pilot'
import { z } from 'zod'
import { jsonArgument, PYTHON_ENV, PYTHON_INPUTS, pythonArgv } from '../python/program.ts'

const count = z.int().positive()

/** Largest differences of log-probabilities that count as none. */
export const auditParams = z.strictObject({
  rescore_tolerance: z.number().nonnegative(),
  join_tolerance: z.number().nonnegative(),
})

/** Exact tokens, tool tokens out of the loss, identity of policy and group: from the raw record of a step. */
export const audit = defineStage({
  name: 'audit',
  folder: import.meta.dirname,
  params: auditParams,
  inputs: {
    ...PYTHON_INPUTS,
    record: tree(),
    behaviour: tree(),
    questions: tree(),
    /** stages/ppo-step: the code whose loss is audited. */
    trainer: tree(),
  },
  outputs: { report: file('report.json') },
  run: (context) =>
    pythonArgv(context, 'audit.py', {
      params: jsonArgument(context.params),
      record: context.inputs.record,
      behaviour: context.inputs.behaviour,
      questions: context.inputs.questions,
      trainer: context.inputs.trainer,
      out: context.outputs.report,
    }),
  env: PYTHON_ENV,
  resources: { cpus: 1, memoryMiB: 2048 },
  timeoutMs: 10 * 60_000,
})

/** Rollouts of the experiment; the killed one must be terminal within `terminal_seconds`. */
export const failedWorkerParams = z.strictObject({
  seed: z.int().nonnegative(),
  ...{ workers: count, turns: count, max_tokens: count, timeout_seconds: count },
  terminal_seconds: z.number().positive(),
})

/** A worker is killed after its first model call: a diagnostic, no reward, no row, nothing left behind. */
export const failedWorker = defineStage({
  name: 'failed-worker',
  folder: import.meta.dirname,
  params: failedWorkerParams,
  inputs: { ...PYTHON_INPUTS, policy: tree(), questions: tree() },
  outputs: { report: file('report.json'), work: tree('work') },
  run: (context) =>
    pythonArgv(context, 'failed_worker.py', {
      params: jsonArgument(context.params),
      policy: context.inputs.policy,
      questions: context.inputs.questions,
      work: context.outputs.work,
      out: context.outputs.report,
    }),
  env: PYTHON_ENV,
  resources: { cpus: 1, memoryMiB: 2048 },
  timeoutMs: 10 * 60_000,
})

/** Rollouts of the experiment. */
export const aggregationParams = z.strictObject({
  seed: z.int().nonnegative(),
  ...{ episodes: count, workers: count, turns: count, max_tokens: count, timeout_seconds: count },
})

/** The same episodes as transitions and as trajectories, on a harness that rewrites its context. */
export const aggregation = defineStage({
  name: 'aggregation',
  folder: import.meta.dirname,
  params: aggregationParams,
  inputs: { ...PYTHON_INPUTS, policy: tree(), questions: tree(), trainer: tree() },
  outputs: { report: file('report.json'), work: tree('work') },
  run: (context) =>
    pythonArgv(context, 'aggregation.py', {
      params: jsonArgument(context.params),
      policy: context.inputs.policy,
      questions: context.inputs.questions,
      trainer: context.inputs.trainer,
      work: context.outputs.work,
      out: context.outputs.report,
    }),
  env: PYTHON_ENV,
  resources: { cpus: 1, memoryMiB: 2048 },
  timeoutMs: 10 * 60_000,
})
