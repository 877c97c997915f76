import { defineStage, file, tree } from 'hessian-pilot'
import { NETWORK, PYTHON } from '../python/variables.ts'
import { source } from './source.ts'

/** The upstream source at its pin: an archive by sha256, or a git commit by its 40 digits. */
export const checkout = defineStage({
  name: 'checkout',
  folder: import.meta.dirname,
  params: source,
  inputs: {
    /** stages/launcher. */
    launcher: tree(),
  },
  outputs: { source: tree('source'), about: file('about.json') },
  run: ({ params, inputs, outputs, src, node }) => [
    ...[node, `${src}/checkout.ts`, JSON.stringify(params), inputs.launcher, outputs.source, outputs.about],
  ],
  env: { pass: [...NETWORK, ...PYTHON] },
  network: true,
  timeoutMs: 15 * 60_000,
})
