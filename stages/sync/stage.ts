import { defineStage, file, tree } from 'hessian-pilot'
import { z } from 'zod'
import { NETWORK, PYTHON } from '../python/variables.ts'

/** Fetches the environment of a hashed lock and keeps it as wheels. The venv is made from them per machine, offline. */
export const sync = defineStage({
  name: 'sync',
  folder: import.meta.dirname,
  params: z.strictObject({ python: z.string().regex(/^3\.\d+$/) }),
  inputs: {
    /** Requirements with hashes and without URLs. */
    lock: file(),
    /** Hashed requirements of uv and of the build tools. */
    tools: tree(),
    /** stages/launcher. */
    launcher: tree(),
  },
  outputs: { environment: tree('environment') },
  run: ({ params, inputs, outputs, src, node }) => [
    ...[
      node,
      `${src}/sync.ts`,
      params.python,
      inputs.lock,
      inputs.tools,
      inputs.launcher,
      outputs.environment,
    ],
  ],
  env: { pass: [...NETWORK, ...PYTHON] },
  lockfile: 'lock',
  network: true,
  timeoutMs: 30 * 60_000,
})
