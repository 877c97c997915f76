// Plain stages for tests of plan/: what declare/ would make, with everything defaulted.

import type { InputRef, Stage } from '../../src/model/stage.ts'

/** A stage with one output `out` and the given inputs. */
export function plainStage(name: string, fields: Partial<Stage> = {}): Stage {
  return {
    name,
    argv: ['make', '{out:out}'],
    inputs: {},
    outputs: { out: { kind: 'file', path: 'out' } },
    environment: { keep: [], pass: [], secrets: [], set: {} },
    tools: {},
    lockfile: undefined,
    image: undefined,
    accelerator: [],
    isolation: 'workdir',
    network: false,
    resources: { cpus: 1, memoryMiB: 0, gpus: 0 },
    timeoutMs: undefined,
    retries: 0,
    resume: undefined,
    where: () => ({ file: 'pipeline.ts', line: 7 }),
    ...fields,
  }
}

/** Inputs reading output `out` of each named stage. */
export function reads(...stages: readonly string[]): Readonly<Record<string, InputRef>> {
  return Object.fromEntries(
    stages.map((stage) => [stage, { from: 'stage', stage, output: 'out', kind: 'file' } as const]),
  )
}
