import { expect, test } from 'vitest'
import { PilotError } from '../../../src/model/error.ts'
import type { Stage } from '../../../src/model/stage.ts'
import { planGraph } from '../../../src/plan/graph.ts'
import { plainStage, reads } from '../../rig/stages.ts'

function refusalOf(stages: readonly Stage[]): string {
  try {
    planGraph(stages)
  } catch (error) {
    if (error instanceof PilotError) return `${error.code}: ${error.message}`
    throw error
  }
  throw new Error('nothing was refused')
}

test('dependencies come before dependents, declaration order where the graph leaves room', () => {
  const graph = planGraph([
    plainStage('c', { inputs: reads('b', 'a') }),
    plainStage('b', { inputs: reads('a') }),
    plainStage('a'),
    plainStage('alone'),
  ])

  expect(graph.order.map((index) => graph.stages[index]?.name)).toEqual(['a', 'alone', 'b', 'c'])
  expect(graph.dependencies).toEqual([[1, 2], [2], [], []])
  expect(graph.dependents).toEqual([[], [0], [0, 1], []])
})

test('a cycle is refused with the stages along it and where they are declared', () => {
  const stages = [
    plainStage('a', { inputs: reads('c') }),
    plainStage('b', { inputs: reads('a') }),
    plainStage('c', { inputs: reads('b') }),
  ]

  expect(refusalOf(stages)).toBe(
    'cycle: stages wait for each other: "a" (pipeline.ts:7) needs "c" (pipeline.ts:7) needs "b" (pipeline.ts:7) needs "a" (pipeline.ts:7)',
  )
})

test('a stage that reads itself is a cycle', () => {
  expect(refusalOf([plainStage('a', { inputs: reads('a') })])).toMatch(/^cycle: .*"a".* needs "a"/)
})

test('an unknown stage is refused with the nearest name', () => {
  expect(refusalOf([plainStage('evaluate'), plainStage('b', { inputs: reads('evalute') })])).toBe(
    'unknown-stage: input "evalute" of stage "b" (pipeline.ts:7) comes from stage "evalute", which is not in the pipeline; did you mean "evaluate"?',
  )
})

test('an unknown output is refused with the nearest name', () => {
  const inputs = { x: { from: 'stage', stage: 'a', output: 'otu', kind: 'file' } } as const

  expect(refusalOf([plainStage('a'), plainStage('b', { inputs })])).toMatch(
    /^unknown-output: .*did you mean "out"\?$/,
  )
})

test('an output name of Object.prototype is no output', () => {
  const inputs = { x: { from: 'stage', stage: 'a', output: 'constructor', kind: 'file' } } as const

  expect(refusalOf([plainStage('a'), plainStage('b', { inputs })])).toMatch(/^unknown-output/)
})

test('a file is refused where a folder is wanted', () => {
  const inputs = { x: { from: 'stage', stage: 'a', output: 'out', kind: 'tree' } } as const

  expect(refusalOf([plainStage('a'), plainStage('b', { inputs })])).toBe(
    'kind-mismatch: input "x" of stage "b" (pipeline.ts:7) wants a tree, but "out" of stage "a" (pipeline.ts:7) is a file',
  )
})

test.each(['a', 'A'])('two producers of one path are refused (%s)', (twin) => {
  expect(refusalOf([plainStage('a'), plainStage(twin)])).toBe(
    `duplicate-stage: two stages would produce artifacts/latest/${twin}: "a" (pipeline.ts:7) and "${twin}" (pipeline.ts:7)`,
  )
})

test.each([
  ['the same path', 'x', 'x'],
  ['one within the other', 'x', 'x/y'],
  ['the other within the one', 'x/y/z', 'x/y'],
])('overlapping outputs are refused: %s', (_, first, second) => {
  const outputs = { one: { kind: 'tree', path: first }, two: { kind: 'file', path: second } } as const

  expect(refusalOf([plainStage('a', { outputs })])).toMatch(/^overlapping-outputs: .*"one".*"two"/)
})

test('outputs whose names begin alike do not overlap', () => {
  const outputs = { one: { kind: 'tree', path: 'x' }, two: { kind: 'file', path: 'xy' } } as const

  expect(planGraph([plainStage('a', { outputs })]).order).toEqual([0])
})

test.each(['__proto__', '../x', '', '.', 'a/b', 'a b', 'a\nb', '-x', 'ä', 'x'.repeat(101)])(
  '%j cannot name a stage',
  (name) => {
    expect(refusalOf([plainStage(name)])).toMatch(/^invalid-name: /)
  },
)

test.each(['', '/etc/x', '../x', 'a/../b', 'a//b', './a', 'a\\b', 'a\0b', '\ud800'])(
  '%j is no output path',
  (path) => {
    expect(refusalOf([plainStage('a', { outputs: { out: { kind: 'file', path } } })])).toMatch(
      /^invalid-path: /,
    )
  },
)

test.each<[string, Partial<Stage>, RegExp]>([
  ['no program', { argv: [] }, /run returned no program/],
  ['no output', { outputs: {} }, /declares no output/],
  ['a number among the arguments', { argv: ['x', 3 as unknown as string] }, /argument 1 of run is number/],
  ['a NUL in an argument', { argv: ['x', 'a\0b'] }, /NUL/],
  ['no CPUs', { resources: { cpus: 0, memoryMiB: 0, gpus: 0 } }, /resources.cpus is 0/],
  ['half a GPU', { resources: { cpus: 1, memoryMiB: 0, gpus: 0.5 } }, /resources.gpus is 0.5/],
  ['a negative time limit', { timeoutMs: -1 }, /timeoutMs is -1/],
  ['an image by tag', { image: 'debian:12' }, /not pinned/],
  ['a lockfile that is no input', { lockfile: 'lock' }, /lockfile names input "lock"/],
  [
    'HOME',
    { environment: { keep: ['HOME'], pass: [], secrets: [], set: {} } },
    /HOME, which pilot sets itself/,
  ],
  [
    'a variable kept and passed',
    { environment: { keep: ['A'], pass: ['A'], secrets: [], set: {} } },
    /A is in env.keep and in env.pass/,
  ],
])('refused: %s', (_, fields, message) => {
  expect(refusalOf([plainStage('a', fields)])).toMatch(message)
})
