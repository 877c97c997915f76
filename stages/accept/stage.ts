import { defineStage, file, json, tree } from 'hessian-pilot'
import { z } from 'zod'
import { PYTHON_ENV, PYTHON_INPUTS, pythonArgv } from '../python/program.ts'

const acceptance = z.looseObject({
  summary: z.string(),
  label: z.enum(['supported agent-RL recipe', 'not supported', 'not established']),
  criteria: z.array(
    z.looseObject({
      name: z.string(),
      verdict: z.enum(['pass', 'fail', 'not established']),
      measured: z.string(),
      evidence: z.record(z.string(), z.string()),
    }),
  ),
})

/** The six criteria of acceptance, each from its evidence: pass, fail, or not established. */
export const accept = defineStage({
  name: 'accept',
  folder: import.meta.dirname,
  inputs: {
    ...PYTHON_INPUTS,
    /** Checkpoints: the baseline, the update's, and that of the same update made again. */
    ...{ base: tree(), adapted: tree(), repeated: tree() },
    /** Reports of the audits and of the evaluation. */
    ...{ audit: file(), failedWorker: file(), aggregation: file(), reload: file(), verdict: file() },
  },
  outputs: { acceptance: json('acceptance.json', acceptance) },
  run: (context) =>
    pythonArgv(context, 'accept.py', {
      base: context.inputs.base,
      adapted: context.inputs.adapted,
      repeated: context.inputs.repeated,
      audit: context.inputs.audit,
      'failed-worker': context.inputs.failedWorker,
      aggregation: context.inputs.aggregation,
      reload: context.inputs.reload,
      verdict: context.inputs.verdict,
      out: context.outputs.acceptance,
    }),
  env: PYTHON_ENV,
  timeoutMs: 10 * 60_000,
})
