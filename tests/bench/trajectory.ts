// Bench of the trajectory checker against Python's json with the same checks, on one generated file.
//   npx node tests/bench/trajectory.ts [--episodes 20000] [--runs 3]     both, and the ratio
//   npx node tests/bench/trajectory.ts --gib 2                           ours alone: speed and peak memory
import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { checkTrajectories, readTrajectories } from '../../trajectory/index.ts'

const { values } = parseArgs({
  options: {
    episodes: { type: 'string', default: '20000' },
    gib: { type: 'string' },
    runs: { type: 'string', default: '3' },
    spaced: { type: 'boolean', default: false }, // ", " and ": ", as Python's json.dumps writes
    measure: { type: 'string' }, // used by the bench itself: one run in a process of its own
    file: { type: 'string' },
  },
})

interface Figures {
  readonly episodes: number
  readonly seconds: number
  readonly peakMiB: number
}

if (values.measure === undefined) bench()
else console.log(JSON.stringify(await measure(values.measure, values.file ?? '')))

function bench(): void {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'trajectory-bench-'))
  const file = join(folder, 'episodes.jsonl')
  try {
    const limitBytes = values.gib === undefined ? Number.POSITIVE_INFINITY : Number(values.gib) * 2 ** 30
    generate(file, values.gib === undefined ? Number(values.episodes) : Number.POSITIVE_INFINITY, limitBytes)
    const sizeMB = statSync(file).size / 1e6
    console.log(`file: ${sizeMB.toFixed(0)} MB; node ${process.version}, ${availableParallelism()} cores`)
    const self = fileURLToPath(import.meta.url)
    const ours = best(() => runJson(process.execPath, [self, '--measure', 'check', '--file', file]))
    print('pilot, checkTrajectories', ours, sizeMB)
    if (values.gib !== undefined) return
    print(
      'pilot, readTrajectories',
      best(() => runJson(process.execPath, [self, '--measure', 'read', '--file', file])),
      sizeMB,
    )
    const reference = fileURLToPath(new URL('trajectory_reference.py', import.meta.url))
    const python = best(() => runJson('python3', [reference, file]))
    print('Python json, same checks', python, sizeMB)
    console.log(`ratio: ${(python.seconds / ours.seconds).toFixed(1)}`)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function measure(what: string, file: string): Promise<Figures> {
  const start = performance.now()
  let episodes = 0
  if (what === 'read') for await (const _ of readTrajectories(file)) episodes++
  else {
    const step = await checkTrajectories(file).next()
    if (step.done !== true) throw new Error(step.value.message)
    episodes = step.value
  }
  const seconds = (performance.now() - start) / 1000
  return { episodes, seconds, peakMiB: process.resourceUsage().maxRSS / 1024 }
}

function runJson(command: string, args: readonly string[]): Figures {
  return JSON.parse(execFileSync(command, args, { encoding: 'utf8' }))
}

function best(run: () => Figures): Figures {
  const all = Array.from({ length: Number(values.runs) }, run)
  return all.reduce((a, b) => (b.seconds < a.seconds ? b : a))
}

function print(name: string, { episodes, seconds, peakMiB }: Figures, sizeMB: number): void {
  const speed = `${(sizeMB / seconds).toFixed(0)} MB/s`
  console.log(
    `${name.padEnd(26)} ${episodes} episodes, ${seconds.toFixed(2)} s, ${speed}, peak ${peakMiB.toFixed(0)} MiB`,
  )
}

/** Episodes of three calls with prompts of 200 tokens, 60 sampled ones, log probabilities and some context; groups of four. */
function generate(file: string, episodes: number, limitBytes: number): void {
  const random = createRandom(1)
  const out = openSync(file, 'w')
  let bytes = 0
  for (let i = 0; i < episodes && bytes < limitBytes; ) {
    let text = ''
    for (; i < episodes && text.length < 1 << 22; i++) text += toText(toEpisode(i, random))
    bytes += writeSync(out, text)
  }
  closeSync(out)
}

function toText(record: unknown): string {
  const json = JSON.stringify(record)
  return `${values.spaced ? json.replaceAll(/([,:])(?=["[{0-9-])/g, '$1 ') : json}\n`
}

function toEpisode(i: number, random: () => number): unknown {
  const group = i >> 2
  const tokens = (count: number) => Array.from({ length: count }, () => Math.floor(random() * 151_936))
  const calls = [0, 1, 2].map((turn) => ({
    call_id: `call-${turn}`,
    prompt_token_ids: tokens(200),
    response_token_ids: tokens(60),
    response_role: 'assistant',
    response_loss_mask: Array(60).fill(1),
    finish_reason: turn === 2 ? 'stop' : 'tool_calls',
    context: [
      { role: 'system', content: 'You may use the calculator. Answer with "ANSWER:" and a number.' },
      {
        role: 'user',
        content: `Frage ${i}: Wie viele Äpfel bleiben übrig, wenn ${i % 97} von ${i % 89} gegessen werden?\n`,
      },
    ],
    behavior_logprobs: Array.from({ length: 60 }, () => Math.log(1 - random() * 0.95)),
  }))
  return {
    schema_version: 'hessian.trajectory.v1',
    episode_id: `run-7f3a-episode-${i}`,
    task_id: `task-${group}`,
    group_id: `group-${group}`,
    seed: i,
    source_kind: 'fixture',
    policy: {
      model_id: 'qwen2.5-1.5b-instruct',
      revision: '989aa7980e4cf806f80c7fef2b1adb7bc71aa306',
      tokenizer_id: 'qwen2.5-1.5b-instruct',
      tokenizer_revision: '989aa7980e4cf806f80c7fef2b1adb7bc71aa306',
      chat_template_sha256: 'cd8e9439f0570856fd70470bf8889ebd8b5d1107207f67a5efb46e342330527f',
    },
    harness: { name: 'calculator', version: '1.0.0', revision: '69f5a40b36d9bff646b8e7a5532e8b78bd41eaf9' },
    reward: {
      value: random() < 0.5 ? 1 : random(),
      scorer: 'exact-match',
      scorer_revision: 'b1946ac92492d2347c6235b4d2611184',
    },
    calls,
  }
}

/** Seeded: every run of the bench has the same file. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
