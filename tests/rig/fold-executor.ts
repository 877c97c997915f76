// A fake executor: understands one command, `fold PARAM OUT TRACE IN…`, which it runs in this process - so that thousands
// of stages can be "executed" by the real engine on the real store in no time.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Executor, Job, JobOutcome } from '../../src/model/ports.ts'

export interface FoldExecutor extends Executor {
  /** Stages executed so far, in order. */
  readonly executed: readonly string[]
}

const OUTCOME: JobOutcome = {
  failure: undefined,
  usage: { wallMs: 1, cpuMs: 0, peakMemoryBytes: 0, method: 'none' },
  log: null,
  isolation: 'workdir',
}

/** What `fold` writes: few values, so that changed inputs often give the same output (early cut-off). */
export function fold(param: number, inputs: readonly number[]): number {
  return inputs.reduce((sum, value) => (sum * 3 + value) % 5, param % 5)
}

/** The number in a text, comment lines left out. */
export function readValue(text: string): number {
  return Number(text.replaceAll(/#.*\n/g, ''))
}

export function openFoldExecutor(): FoldExecutor {
  const executed: string[] = []
  return {
    name: 'fold',
    executed,
    submit: async (job) => {
      executed.push(job.stage)
      execute(job)
      return job.stage
    },
    wait: async () => OUTCOME,
    cancel: () => undefined,
    reattach: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  }
}

function execute({ argv, cwd }: Job): void {
  const [, param, out = '', trace = '', ...inputs] = argv
  const texts = inputs.map((path) => readFileSync(join(cwd, path), 'utf8'))
  // The trace makes the output folder of each action its own, while consumers read only `out`.
  writeFileSync(join(cwd, trace), JSON.stringify([param, ...texts]))
  writeFileSync(join(cwd, out), String(fold(Number(param), texts.map(readValue))))
}
