import { defineStage, file, tree } from 'hessian-pilot'
import { PYTHON_ENV, PYTHON_INPUTS, pythonArgv } from '../python/program.ts'

/** A fresh process loads the checkpoint: logits on the fixed probe are bitwise those of the update, and every captured
 *  token is scored again with the behaviour policy. */
export const reload = defineStage({
  name: 'reload',
  folder: import.meta.dirname,
  inputs: { ...PYTHON_INPUTS, policy: tree(), behaviour: tree(), record: tree() },
  outputs: { report: file('report.json') },
  run: (context) =>
    pythonArgv(context, 'reload.py', {
      checkpoint: context.inputs.policy,
      base: context.inputs.behaviour,
      record: context.inputs.record,
      out: context.outputs.report,
    }),
  env: PYTHON_ENV,
  resources: { cpus: 1, memoryMiB: 2048 },
  timeoutMs: 10 * 60_000,
})
