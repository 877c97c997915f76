// The engine against the oracle: on random DAGs and random edits, the same actions are executed, and every output is right.

import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { InputRef, Stage } from '../../src/model/stage.ts'
import { openFoldExecutor } from '../rig/fold-executor.ts'
import { runInProcess } from '../rig/in-process.ts'
import { plainStage } from '../rig/stages.ts'
import { type Node, openOracle, toKey } from './oracle.ts'

type Edit =
  | { readonly type: 'source'; readonly at: number; readonly value: number }
  | { readonly type: 'comment'; readonly at: number; readonly value: number }
  | { readonly type: 'param'; readonly at: number; readonly value: number }
  | { readonly type: 'rename'; readonly at: number; readonly value: number }
  | { readonly type: 'touch' | 'tamper' | 'delete'; readonly at: number }

const small = fc.nat(4)
const edits: fc.Arbitrary<Edit> = fc.oneof(
  fc.record({ type: fc.constantFrom('source', 'comment', 'param', 'rename'), at: fc.nat(9), value: small }),
  fc.record({ type: fc.constantFrom('touch', 'tamper', 'delete'), at: fc.nat(9) }),
)
const dags = fc
  .array(fc.record({ param: small, source: small, reads: fc.uniqueArray(fc.nat(8), { maxLength: 3 }) }), {
    minLength: 1,
    maxLength: 9,
  })
  .map((rows): Node[] =>
    rows.map((row, i) => ({
      name: `s${i}`,
      param: row.param,
      source: String(row.source),
      reads: row.reads.filter((j) => j < i).sort((a, b) => a - b),
    })),
  )

test('the engine executes exactly what the oracle says, after any edits', async () => {
  await fc.assert(
    fc.asyncProperty(
      dags,
      fc.array(fc.array(edits, { maxLength: 3 }), { minLength: 1, maxLength: 5 }),
      checkRuns,
    ),
    { numRuns: Number(process.env['PILOT_PROPERTY_RUNS'] ?? 60) },
  )
}, 600_000)

async function checkRuns(start: readonly Node[], rounds: readonly (readonly Edit[])[]): Promise<void> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'pilot-property-')))
  const oracle = openOracle()
  const executor = openFoldExecutor()
  let nodes = start
  try {
    for (const round of [[], ...rounds]) {
      for (const edit of round) nodes = applyEdit(root, nodes, edit, oracle)
      writeSources(root, nodes)

      const expected = oracle.run(nodes)

      const { ends } = await runInProcess(
        root,
        nodes.map((node) => toStage(node, nodes)),
        executor,
      )

      const executed = ends
        .filter((end) => end.outcome === 'executed')
        .map(
          (end) =>
            oracle.look(
              nodes,
              nodes.findIndex((node) => node.name === end.stage),
            ).key,
        )
      expect(executed.sort()).toEqual(expected)
      expect(ends.map((end) => end.stage).sort()).toEqual(nodes.map((node) => node.name).sort())
      for (const [index, node] of nodes.entries()) {
        expect(readFileSync(outputOf(root, node), 'utf8')).toBe(String(oracle.look(nodes, index).value))
      }
    }
  } finally {
    makeWritable(root)
    rmSync(root, { recursive: true, force: true })
  }
}

function toStage(node: Node, nodes: readonly Node[]): Stage {
  const inputs: Record<string, InputRef> = {}
  // Inputs are named by position: another name would be another key, also where the content is the same.
  for (const [position, index] of node.reads.entries()) {
    inputs[`r${position}`] = { from: 'stage', stage: nodes[index]?.name ?? '', output: 'out', kind: 'file' }
  }
  inputs['source'] = { from: 'source', path: `src/${nodes.indexOf(node)}.txt`, kind: 'file' }
  const argv = [
    'fold',
    String(node.param),
    '{out:out}',
    '{out:trace}',
    ...Object.keys(inputs).map((name) => `{in:${name}}`),
  ]
  const outputs = { out: { kind: 'file', path: 'out' }, trace: { kind: 'file', path: 'trace' } } as const
  return plainStage(node.name, { argv, inputs, outputs })
}

function writeSources(root: string, nodes: readonly Node[]): void {
  mkdirSync(join(root, 'src'), { recursive: true })
  for (const [index, node] of nodes.entries()) {
    const path = join(root, 'src', `${index}.txt`)
    if (readOr(path) !== node.source) writeFileSync(path, node.source)
  }
}

function applyEdit(
  root: string,
  nodes: readonly Node[],
  edit: Edit,
  oracle: ReturnType<typeof openOracle>,
): readonly Node[] {
  const index = edit.at % nodes.length
  const node = nodes[index]
  if (!node) throw new RangeError(String(index))
  const replace = (fields: Partial<Node>) => nodes.with(index, { ...node, ...fields })
  switch (edit.type) {
    case 'source':
      return replace({ source: String(edit.value) })
    case 'comment':
      return replace({ source: `# ${edit.value}\n${readValueOf(node)}` })
    case 'param':
      return replace({ param: edit.value })
    case 'rename':
      return replace({ name: `s${index}v${edit.value}` })
    case 'touch':
      utimesSync(join(root, 'src', `${index}.txt`), new Date(), new Date())
      return nodes
    case 'tamper':
    case 'delete':
      damage(root, node, edit.type, oracle)
      return nodes
  }
}

/** Spoils what latest/<stage> shows; the oracle is told which action's result that was. */
function damage(
  root: string,
  node: Node,
  how: 'tamper' | 'delete',
  oracle: ReturnType<typeof openOracle>,
): void {
  const latest = join(root, 'artifacts/latest', node.name)
  const trace = readOr(join(latest, 'trace'))
  if (trace === undefined || readOr(outputOf(root, node)) === 'tampered') return
  const tree = realpathSync(latest)
  makeWritable(tree)
  if (how === 'delete') rmSync(tree, { recursive: true })
  else writeFileSync(join(tree, 'out'), 'tampered')
  const [param, ...texts]: readonly string[] = JSON.parse(trace)
  const source = texts.at(-1) ?? ''
  const read = texts.slice(0, -1).map(Number)
  oracle.damage(toKey(Number(param), read, source))
}

function outputOf(root: string, node: Node): string {
  return join(root, 'artifacts/latest', node.name, 'out')
}

function readValueOf(node: Node): string {
  return node.source.replaceAll(/#.*\n/g, '')
}

function readOr(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** The store makes its trees read-only; whoever is not root must undo that to damage or delete them. */
function makeWritable(path: string): void {
  chmodSync(path, statSync(path).mode | 0o700)
  if (!statSync(path).isDirectory()) return
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (!entry.isSymbolicLink()) makeWritable(join(path, entry.name))
  }
}
