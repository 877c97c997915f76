// npm run bench [-- SIZE...]: the same layered DAG by make, ninja, doit and pilot, side by side in one run.
// Prints medians over the rounds (BENCH_ROUNDS, default 3; interleaved) and asserts no times, but that every output is right.
// Tools that are not installed are left out by name. BENCH_DIR: a folder to work in (default: the system's temporary one).
// Cases: cold; noop; cutoff (a comment is added to one source: 1 stage is right for a tool that looks at bytes);
// restore (every output is deleted).

import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expectedValues, layeredDag, type Tool, writeDag } from './generate.ts'
import { timed } from './timed.ts'

const BIN = fileURLToPath(new URL('../../bin/pilot.js', import.meta.url))
const COMMANDS: Record<Tool, readonly string[]> = {
  make: ['make', '-s', '-j2'],
  ninja: ['ninja', '--quiet', '-j2'],
  doit: ['doit', '-n2', '-P', 'thread'],
  pilot: [process.execPath, BIN, 'run', '-j2'],
}
const CASES = ['cold', 'noop', 'cutoff', 'restore'] as const
type Case = (typeof CASES)[number]

interface Sample {
  readonly wallMs: number
  readonly peakMb: number
  readonly stages: number
}

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 3)
const sizes = process.argv.slice(2).map(Number)
const work = mkdtempSync(join(process.env['BENCH_DIR'] ?? tmpdir(), 'pilot-bench-'))
try {
  for (const size of sizes.length > 0 ? sizes : [1_000, 10_000]) await compare(size)
} finally {
  rmSync(work, { recursive: true, force: true })
}

async function compare(size: number): Promise<void> {
  const tools = (Object.keys(COMMANDS) as Tool[]).filter(isInstalled)
  const samples = new Map<string, Sample[]>()
  for (let round = 0; round < rounds; round++) {
    for (const tool of tools) {
      for (const [name, sample] of await measure(tool, size)) {
        const key = `${tool} ${name}`
        samples.set(key, [...(samples.get(key) ?? []), sample])
      }
    }
  }
  console.log(`\nlayered DAG, ${size} stages, median of ${rounds}: seconds [stages run] peak MB`)
  console.log(['', ...CASES].map((text) => text.padEnd(26)).join(''))
  for (const tool of tools) {
    const cells = CASES.map((name) => format(samples.get(`${tool} ${name}`) ?? []).padEnd(26))
    console.log(tool.padEnd(26) + cells.join(''))
  }
}

async function measure(tool: Tool, size: number): Promise<readonly (readonly [Case, Sample])[]> {
  const folder = join(work, tool)
  const log = join(work, `${tool}.log`)
  rmSync(folder, { recursive: true, force: true })
  rmSync(log, { force: true })
  const dag = layeredDag(size)
  writeDag(tool, dag, folder, log)
  const expected = expectedValues(dag)
  const outputs = expected.map((_, id) => outputPath(tool, folder, id))
  const results: (readonly [Case, Sample])[] = []
  for (const name of CASES) {
    if (name === 'cutoff') writeFileSync(join(folder, 'src', '0'), '# a comment\n0\n')
    if (name === 'restore') removeOutputs(tool, folder)
    writeFileSync(log, '')
    const { wallMs, peakMb } = await timed(COMMANDS[tool], folder)
    const stages = readFileSync(log, 'utf8').split('\n').length - 1
    results.push([name, { wallMs, peakMb, stages }])
    for (const [id, path] of outputs.entries()) {
      const got = readFileSync(path, 'utf8')
      if (got !== `${expected[id]}\n`) throw new Error(`${tool}, ${name}: stage ${id} wrote ${got}`)
    }
    // Coarse clocks: a source edited in the tick of its output would look as old as it.
    appendFileSync(log, '')
  }
  return results
}

function outputPath(tool: Tool, folder: string, id: number): string {
  return tool === 'pilot' ? join(folder, 'artifacts/latest', `s${id}`, 'out') : join(folder, 'o', String(id))
}

/** Of pilot the links to the outputs: the trees behind them are the store, as a cache is another tool's. */
function removeOutputs(tool: Tool, folder: string): void {
  const path = join(folder, tool === 'pilot' ? 'artifacts/latest' : 'o')
  rmSync(path, { recursive: true })
  mkdirSync(path)
}

function isInstalled(tool: Tool): boolean {
  const [program = ''] = COMMANDS[tool]
  const isThere = spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined
  if (!isThere) console.log(`${tool}: not installed, left out`)
  return isThere
}

function format(samples: readonly Sample[]): string {
  const median = (pick: (sample: Sample) => number): number => {
    const sorted = samples.map(pick).sort((a, b) => a - b)
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  }
  const stages = median((sample) => sample.stages)
  return `${(median((s) => s.wallMs) / 1_000).toFixed(3)} [${stages}] ${median((s) => s.peakMb).toFixed(0)} MB`
}
