// One layered DAG, written for each tool in its own files: ten layers; each stage reads three stages of the layer above
// and a source of its own. A stage is one shell process that folds its inputs to a number; comment lines do not count,
// so a comment in a source changes no output.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type Tool = 'make' | 'ninja' | 'doit' | 'pilot'

interface Node {
  readonly id: number
  readonly reads: readonly number[]
}

const LAYERS = 10
const FAN_IN = 3

const STAGE = `#!/bin/sh
id=$1 log=$2 out=$3; shift 3; h=7
for f; do
  while read -r v; do case $v in '#'*) ;; *) h=$(( (h * 31 + v) % 1000003 )) ;; esac; done <"$f"
done
echo $h >"$out"
echo "$id" >>"$log"
`

/** Stages in an order in which each comes after those it reads. */
export function layeredDag(stages: number): readonly Node[] {
  const width = Math.floor(stages / LAYERS)
  const random = mulberry32(1)
  return Array.from({ length: width * LAYERS }, (_, id) => {
    const above = (Math.floor(id / width) - 1) * width
    const reads = new Set<number>()
    while (above >= 0 && reads.size < Math.min(FAN_IN, width)) reads.add(above + Math.floor(random() * width))
    return { id, reads: [...reads].sort((a, b) => a - b) }
  })
}

/** The number each stage must write while each source holds its stage's id. */
export function expectedValues(dag: readonly Node[]): readonly number[] {
  const values: number[] = []
  for (const { id, reads } of dag) {
    const folded = [...reads.map((from) => values[from] ?? 0), id]
    values.push(folded.reduce((h, v) => (h * 31 + v) % 1_000_003, 7))
  }
  return values
}

/** Writes sources and the tool's own description of the DAG into `folder`. Each run of a stage adds a line to `log`. */
export function writeDag(tool: Tool, dag: readonly Node[], folder: string, log: string): void {
  mkdirSync(join(folder, 'src'), { recursive: true })
  if (tool !== 'pilot') mkdirSync(join(folder, 'o'))
  writeFileSync(join(folder, 'stage.sh'), STAGE)
  for (const { id } of dag) writeFileSync(join(folder, 'src', String(id)), `${id}\n`)
  for (const [name, text] of Object.entries(WRITERS[tool](dag, log))) writeFileSync(join(folder, name), text)
}

const inputsOf = ({ id, reads }: Node): string[] => [...reads.map((from) => `o/${from}`), `src/${id}`]
const commandOf = (node: Node, log: string): string =>
  `sh stage.sh ${node.id} ${log} o/${node.id} ${inputsOf(node).join(' ')}`

const WRITERS: Record<Tool, (dag: readonly Node[], log: string) => Record<string, string>> = {
  make: (dag, log) => ({
    Makefile: `all: ${dag.map(({ id }) => `o/${id}`).join(' ')}\n${dag
      .map((node) => `o/${node.id}: ${inputsOf(node).join(' ')}\n\t${commandOf(node, log)}\n`)
      .join('')}`,
  }),
  ninja: (dag, log) => ({
    'build.ninja': `rule r\n  command = $cmd\n  restat = 1\n${dag
      .map((node) => `build o/${node.id}: r ${inputsOf(node).join(' ')}\n  cmd = ${commandOf(node, log)}\n`)
      .join('')}`,
  }),
  doit: (dag, log) => ({
    'dag.json': JSON.stringify(
      dag.map((node) => ({ name: String(node.id), cmd: commandOf(node, log), inputs: inputsOf(node) })),
    ),
    'dodo.py': `import json
DOIT_CONFIG = {"verbosity": 0}
def task_s():
    for s in json.load(open("dag.json")):
        yield {"name": s["name"], "actions": [s["cmd"]], "targets": ["o/" + s["name"]], "file_dep": s["inputs"]}
`,
  }),
  pilot: (dag, log) => ({
    'dag.json': JSON.stringify(dag),
    'pipeline.ts': `import { readFileSync } from 'node:fs'
import { definePipeline, defineStage, file, sourceFile } from 'hessian-pilot'
const dag = JSON.parse(readFileSync(new URL('dag.json', import.meta.url), 'utf8'))
const kinds = [0, 1, 2, 3].map((count) => {
  const names = Array.from({ length: count }, (_, i) => 'from' + i)
  return defineStage({
    name: 'fold',
    inputs: { script: file(), source: file(), ...Object.fromEntries(names.map((name) => [name, file()])) },
    outputs: { out: file('out') },
    run: ({ inputs, outputs }) =>
      ['sh', inputs.script, 'x', ${JSON.stringify(log)}, outputs.out, ...names.map((name) => inputs[name]), inputs.source],
  })
})
export default definePipeline({
  stages: () => {
    const uses = []
    const script = sourceFile('stage.sh')
    for (const { id, reads } of dag) {
      const inputs = { script, source: sourceFile('src/' + id) }
      reads.forEach((from, i) => { inputs['from' + i] = uses[from].outputs.out })
      uses.push(kinds[reads.length]({ name: 's' + id, inputs }))
    }
    return uses
  },
})
`,
  }),
}

/** A small seeded generator, so that every tool and every run gets the same DAG. */
function mulberry32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
