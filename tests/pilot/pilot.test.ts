// The calculator pilot itself, whole and real, in a copy of the project: the index is asked, rollouts go through the
// upstream's gateway, a policy is updated. Nothing is known beforehand of how the verdict turns out.

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createProject, type Ran } from '../rig/project.ts'
import { createScratch } from '../rig/scratch.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const RECIPE = JSON.parse(readFileSync(join(ROOT, 'recipes/calculator.json'), 'utf8'))
const CRITERIA = [
  ...['repeatable update', 'exact tokens', 'tool tokens out of the loss'],
  ...['recovery from a failed worker', 'identity of policy and group', 'held-out result'],
]

const project = createProject({}, 'pilot calculator ü-')
afterAll(() => project[Symbol.dispose]())

let first: Ran
beforeAll(async () => {
  for (const name of ['pipeline.ts', 'stages', 'recipes', 'locks', 'gate.json'])
    cpSync(join(ROOT, name), project.path(name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), project.path('node_modules'))
  first = await project.run(['--to', 'accept'])
}, 900_000)

test('the pilot ends, with every stage executed', () => {
  const failures = first.events.filter((event) => event.type === 'stage-end' && event.failure)

  expect(failures).toEqual([])
  expect(first.code).toBe(0)
  expect(new Set(Object.values(first.outcomes))).toEqual(new Set(['executed']))
})

test('its verdict follows from its interval', () => {
  const verdict = JSON.parse(project.read('artifacts/latest/evaluate/verdict.json'))
  const [low, high] = verdict.interval

  expect(low).toBeLessThanOrEqual(verdict.difference)
  expect(high).toBeGreaterThanOrEqual(verdict.difference)
  expect(verdict.verdict).toBe(low > 0 ? 'improved' : high < 0 ? 'worse' : 'no measurable change')
  expect(verdict.difference).toBeCloseTo(verdict.adapted - verdict.baseline, 9)
})

test('the update changed the policy', () => {
  expect(policyOf(first, 'ppo-step')).not.toBe(policyOf(first, 'base'))
})

test('the gate of this repository passes over it', async () => {
  const gate = await project.pilot(['gate', '--policy', 'gate.json'], { env: { GITHUB_ACTIONS: undefined } })

  expect(gate.stdout).toMatch(/\ngate: pass: 9 of 9 checks pass/)
  expect(gate.code).toBe(0)
})

test('all six criteria pass on what was captured, and so the recipe is supported', () => {
  const acceptance = JSON.parse(project.read('artifacts/latest/accept/acceptance.json'))

  expect(verdictsOf(acceptance)).toEqual(Object.fromEntries(CRITERIA.map((name) => [name, 'pass'])))
  expect(acceptance.label).toBe('supported agent-RL recipe')
})

test('its own rollouts translate into captured rows that the contract accepts', async () => {
  const { 'config.json': _, ...files } = JSON.parse(
    project.read('artifacts/latest/base/policy/manifest.json'),
  ).files
  const revision = JSON.parse(project.read('artifacts/latest/base/report.json')).policy_revision
  project.write({
    'launcher.json': JSON.stringify({
      sourceVersion: '1.0.2',
      sourceKind: 'captured',
      policy: {
        ...{
          revision,
          version: 0,
          tokenizerId: 'calculator-bytes',
          tokenizerRevision: files['tokenizer.json'],
        },
        chatTemplateSha256: files['chat_template.json'],
      },
      harness: { name: 'calculator', version: '1', revision: revision },
      scorer: { name: 'exact', revision },
    }),
  })
  const record = 'artifacts/latest/ppo-step/record'
  const translated = await project.pilot([
    ...[
      'trajectory',
      'translate',
      '--from',
      'agent-lightning',
      '--launcher',
      'launcher.json',
      '--out',
      'rows.jsonl',
    ],
    ...[`${record}/rollouts.jsonl`, `${record}/events.jsonl`],
  ])
  const validated = await project.pilot(['trajectory', 'validate', '--json', 'rows.jsonl'])

  const { ppoStep } = RECIPE
  expect(translated.stderr).toBe('')
  expect(translated.stdout).toBe(`rows.jsonl: ${ppoStep.groups * ppoStep.samples} rows, 0 diagnostics\n`)
  expect(JSON.parse(validated.stdout)).toMatchObject({
    valid: true,
    episodes: ppoStep.groups * ppoStep.samples,
  })
})

interface Fault {
  readonly criterion: string
  readonly fault: string
  /** Edits the copies of the evidence. */
  readonly plant: (evidence: Evidence) => void
}

const FAULTS: readonly Fault[] = [
  {
    criterion: 'repeatable update',
    fault: 'one bit of the second checkpoint differs',
    plant: ({ path }) => flipLastBit(path('repeated/model.safetensors')),
  },
  {
    criterion: 'exact tokens',
    fault: 'one captured log-probability is off by 0.01',
    plant: ({ path }) =>
      editLine(path('record/events.jsonl'), isModelRequest, (event) => {
        event.data.response.choices[0].logprobs.content[0].logprob -= 0.01
      }),
  },
  {
    criterion: 'exact tokens',
    fault: 'one call is missing from the sampler’s own log',
    plant: ({ path }) => dropFirstLine(path('record/sampler.jsonl')),
  },
  {
    criterion: 'tool tokens out of the loss',
    fault: 'one observation token is marked as trainable',
    plant: ({ path }) =>
      editLine(
        path('record/rows.jsonl'),
        (row) => row.mask.lastIndexOf(0) > row.mask.indexOf(1),
        (row) => {
          row.mask[row.mask.lastIndexOf(0)] = 1
        },
      ),
  },
  {
    criterion: 'recovery from a failed worker',
    fault: 'the killed worker was scored',
    plant: ({ path }) =>
      editJson(path('failed-worker.json'), (report) => {
        report.scored.push(report.victim)
      }),
  },
  {
    criterion: 'identity of policy and group',
    fault: 'one call was answered by a stale policy version',
    plant: ({ path }) =>
      editLine(path('record/events.jsonl'), isModelRequest, (event) => {
        event.data.model_version = 7
      }),
  },
  {
    criterion: 'identity of policy and group',
    fault: 'one event belongs to the question of another rollout',
    plant: ({ path }) =>
      editLine(path('record/events.jsonl'), isModelRequest, (event) => {
        event.data.request.messages[0].content = '9+9'
      }),
  },
  {
    criterion: 'held-out result',
    fault: 'the adapted policy was never evaluated',
    plant: ({ path }) =>
      editJson(path('verdict.json'), (verdict) => {
        verdict.policies.adapted = verdict.policies.baseline
      }),
  },
]

test.each(FAULTS)('$criterion: red, and no other, where $fault', ({ criterion, plant }) => {
  using evidence = copyEvidence()
  plant(evidence)

  const acceptance = evidence.judge()

  const expected = CRITERIA.map((name) => [name, name === criterion ? 'fail' : 'pass'])
  expect(verdictsOf(acceptance)).toEqual(Object.fromEntries(expected))
  expect(acceptance.label).toBe('not supported')
})

test('what is said to be a fixture establishes nothing', () => {
  using evidence = copyEvidence()
  editJson(evidence.path('record/status.json'), (status) => {
    status.source = 'fixture'
  })

  const acceptance = evidence.judge()

  expect(verdictsOf(acceptance)).toMatchObject({ 'exact tokens': 'not established' })
  expect(acceptance.label).toBe('not established')
})

test('a second run executes nothing, and needs no network', async () => {
  const nowhere = 'http://127.0.0.1:9/simple'
  const offline = { PIP_INDEX_URL: nowhere, UV_DEFAULT_INDEX: nowhere, PIP_NO_INDEX: '1' }

  const again = await project.run(['--to', 'accept'], { env: offline })

  expect(again.end).toMatchObject({ exit: 0, executed: 0, restored: 0, failed: 0 })
})

test('a broken step fails by name with its last log lines; mended, only it and what follows run, to the same bytes', async () => {
  const program = 'stages/ppo-step/ppo_step.py'
  const whole = project.read(program)
  project.write({
    [program]: whole.replace('def main() -> None:\n', `${'$&'}    raise SystemExit("broken on purpose")\n`),
  })
  const plain = await project.pilot(['run', '--to', 'evaluate'])
  project.write({ [program]: `${whole}# mended\n` })
  const mended = await project.run(['--to', 'evaluate'])

  expect(plain.code).toBe(1)
  expect(plain.stdout).toContain('error[stage]: stage "ppo-step": it exited with 1')
  expect(plain.stdout).toContain('| broken on purpose')
  for (const stage of ['checkout', 'sync', 'base', 'evaluate-baseline'])
    expect(mended.outcomes[stage]).toBe('hit')
  expect(mended.outcomes['ppo-step']).toBe('executed')
  expect(policyOf(mended, 'ppo-step')).toBe(policyOf(first, 'ppo-step'))
  expect(mended.outcomes['evaluate-adapted'], 'the checkpoint is the same: early cut-off').toBe('hit')
})

function policyOf(ran: Ran, stage: string): string | undefined {
  return ran.stageEnd(stage).outputs['policy']?.digest
}

// biome-ignore lint/suspicious/noExplicitAny: rows of the record, edited field by field to plant faults.
type Row = any

function verdictsOf(acceptance: Row): Readonly<Record<string, string>> {
  return Object.fromEntries(acceptance.criteria.map(({ name, verdict }: Row) => [name, verdict]))
}

interface Evidence extends Disposable {
  path(name: string): string
  /** Runs audit and accept over the copies. @returns the acceptance */
  judge(): Row
}

/** The evidence of the pilot's own run, copied to be edited. */
function copyEvidence(): Evidence {
  const scratch = createScratch()
  const latest = (name: string): string => project.path('artifacts/latest', name)
  const copies = {
    record: 'ppo-step/record',
    repeated: 'ppo-step-again/policy',
    'failed-worker.json': 'failed-worker/report.json',
    'verdict.json': 'evaluate/verdict.json',
  }
  for (const [name, from] of Object.entries(copies))
    cpSync(realpathSync(latest(from)), scratch.path(name), { recursive: true })
  makeAllWritable(scratch.root)
  const base = latest('base/policy')
  return {
    path: (name) => scratch.path(name),
    judge: () => {
      const params = scratch.write('params.json', JSON.stringify(RECIPE.audit))
      python('stages/audit/audit.py', {
        ...{ params, record: scratch.path('record'), behaviour: base, questions: latest('base/questions') },
        ...{ trainer: project.path('stages/ppo-step'), out: scratch.path('audit.json') },
      })
      python('stages/accept/accept.py', {
        ...{ base, adapted: latest('ppo-step/policy'), repeated: scratch.path('repeated') },
        ...{ audit: scratch.path('audit.json'), 'failed-worker': scratch.path('failed-worker.json') },
        ...{ aggregation: latest('aggregation/report.json'), reload: latest('reload/report.json') },
        ...{ verdict: scratch.path('verdict.json'), out: scratch.path('acceptance.json') },
      })
      return JSON.parse(readFileSync(scratch.path('acceptance.json'), 'utf8'))
    },
    [Symbol.dispose]: () => scratch[Symbol.dispose](),
  }
}

function python(program: string, flags: Readonly<Record<string, string>>): void {
  const words = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
  const launcher = [
    'stages/launcher/launch.ts',
    project.path('artifacts/latest/sync/environment'),
    'stages/lib',
  ]
  const ran = spawnSync(process.execPath, [...launcher, program, ...words], {
    cwd: project.root,
    encoding: 'utf8',
    env: { ...process.env, PILOT_MACHINE_DIR: project.path('artifacts/machine') },
  })
  expect(ran.status, ran.stdout + ran.stderr).toBe(0)
}

function editJson(path: string, edit: (value: Row) => void): void {
  const value = JSON.parse(readFileSync(path, 'utf8'))
  edit(value)
  writeFileSync(path, JSON.stringify(value))
}

/** Edits the first line that is meant. */
function editLine(path: string, isMeant: (row: Row) => boolean, edit: (row: Row) => void): void {
  const rows = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line): Row => JSON.parse(line))
  const row = rows.find(isMeant)
  if (row === undefined) throw new Error(`no line of ${path} is meant`)
  edit(row)
  writeFileSync(path, `${rows.map((each) => JSON.stringify(each)).join('\n')}\n`)
}

function dropFirstLine(path: string): void {
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, text.slice(text.indexOf('\n') + 1))
}

function isModelRequest(event: Row): boolean {
  return event.event_type === 'model_request'
}

function flipLastBit(path: string): void {
  const bytes = readFileSync(path)
  bytes[bytes.length - 1] = (bytes[bytes.length - 1] ?? 0) ^ 1
  writeFileSync(path, bytes)
}

/** Copies of the store's files are read-only as those are. */
function makeAllWritable(root: string): void {
  for (const path of readdirSync(root, { recursive: true, encoding: 'utf8' }))
    chmodSync(join(root, path), 0o700)
}
