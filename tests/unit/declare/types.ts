// Compile-time claims: tsc is the test. Each `@ts-expect-error` line must be refused by the compiler.

import { defineStage, file, json, sourceFile, tree } from 'hessian-pilot'
import { z } from 'zod'

const Report = z.strictObject({ reward: z.number() })
const make = defineStage({
  name: 'make',
  params: z.strictObject({ seed: z.int() }),
  outputs: { model: tree('model'), report: json('report.json', Report), notes: file('notes.txt') },
  run: ({ params, outputs }) => ['make', String(params.seed), outputs.model, outputs.report],
})
const use = defineStage({
  name: 'use',
  inputs: { model: tree(), report: json(Report), any: file() },
  outputs: { out: file('out') },
  run: ({ inputs, outputs }) => ['use', inputs.model, inputs.report, outputs.out],
})

const made = make({ params: { seed: 1 } })
use({ inputs: { model: made.outputs.model, report: made.outputs.report, any: made.outputs.report } })
use({ inputs: { model: made.outputs.model, report: made.outputs.report, any: sourceFile('x.txt') } })

// @ts-expect-error a file is not a tree
use({ inputs: { model: made.outputs.notes, report: made.outputs.report, any: made.outputs.notes } })
// @ts-expect-error a tree is not a file
use({ inputs: { model: made.outputs.model, report: made.outputs.report, any: made.outputs.model } })
// @ts-expect-error a plain file has no schema
use({ inputs: { model: made.outputs.model, report: made.outputs.notes, any: made.outputs.notes } })
// @ts-expect-error an input is missing
use({ inputs: { model: made.outputs.model, report: made.outputs.report } })
// @ts-expect-error unknown output
use({ inputs: { model: made.outputs.modle, report: made.outputs.report, any: made.outputs.notes } })
// @ts-expect-error wrong parameter type
make({ params: { seed: 'one' } })
// @ts-expect-error parameters are missing
make({})
