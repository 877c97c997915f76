// npm run bench:data [-- MIB FILES]: how long it takes to keep a large output, beside one sha256 pass over the same
// bytes by this process, and to bring back a deleted output of many files. Prints, asserts no times.
// BENCH_DIR: a folder to work in (default: the system's temporary one); a tmpfs gives steadier figures.

import { createHash } from 'node:crypto'
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { timed } from './timed.ts'

const BIN = fileURLToPath(new URL('../../bin/pilot.js', import.meta.url))
const [mib = 2_048, files = 20_000] = process.argv.slice(2).map(Number)
const PILOT = [process.execPath, BIN, 'run', '--json']

const work = mkdtempSync(join(process.env['BENCH_DIR'] ?? tmpdir(), 'pilot-bench-'))
try {
  await benchCapture()
  await benchRestore()
} finally {
  rmSync(work, { recursive: true, force: true })
}

async function benchCapture(): Promise<void> {
  writePipeline(`head -c ${mib * 2 ** 20} /dev/zero | tr '\\\\0' 'x' > "$1"`, 'file')
  const { wallMs } = await timed(PILOT, work)
  const [stage = 0] = stageTimes()
  const pass = hashOnce(join(work, 'artifacts/latest/make/out'))
  // All that is not the stage's own time: starting, hashing, renaming, recording, ending.
  const capture = wallMs - stage
  console.log(
    `capture of ${mib} MiB: ${ms(capture)}; one sha256 pass: ${ms(pass)}; ratio ${(capture / pass).toFixed(2)}`,
  )
}

async function benchRestore(): Promise<void> {
  rmSync(join(work, 'artifacts'), { recursive: true })
  writePipeline(`mkdir "$1"; i=0; while [ $i -lt ${files} ]; do echo $i > "$1/$i"; i=$((i+1)); done`, 'tree')
  const cold = await timed(PILOT, work)
  const again = await timed(PILOT, work)
  rmSync(join(work, 'artifacts/latest'), { recursive: true })
  const restored = await timed(PILOT, work)
  const last = readFileSync(join(work, `artifacts/latest/make/out/${files - 1}`), 'utf8')
  if (last !== `${files - 1}\n`) throw new Error(`the last file holds ${JSON.stringify(last)}`)
  console.log(
    `${files} files: cold ${ms(cold.wallMs)}; no-op ${ms(again.wallMs)}; deleted output back in ${ms(restored.wallMs)}`,
  )
}

function writePipeline(sh: string, kind: 'file' | 'tree'): void {
  writeFileSync(
    join(work, 'pipeline.ts'),
    `import { definePipeline, defineStage, file, tree } from 'hessian-pilot'
const make = defineStage({
  name: 'make', outputs: { out: ${kind}('out') }, run: ({ outputs }) => ['sh', '-c', ${JSON.stringify(sh)}, 'sh', outputs.out],
})
export default definePipeline({ stages: () => [make({})] })
`,
  )
}

/** Wall times of the stages of the newest run, in ms. */
function stageTimes(): readonly number[] {
  const runs = join(work, 'artifacts/runs')
  const newest = readdirSync(runs).sort().at(-1) ?? ''
  return readFileSync(join(runs, newest, 'events.ndjson'), 'utf8')
    .split('\n')
    .filter((line) => line.includes('"stage-end"'))
    .map((line) => JSON.parse(line).usage.wallMs)
}

function hashOnce(path: string): number {
  const began = performance.now()
  const hash = createHash('sha256')
  const chunk = Buffer.alloc(4 << 20)
  const fd = openSync(path, 'r')
  for (let got = readSync(fd, chunk); got > 0; got = readSync(fd, chunk)) hash.update(chunk.subarray(0, got))
  closeSync(fd)
  hash.digest()
  return performance.now() - began
}

function ms(value: number): string {
  return `${Math.round(value)} ms`
}
