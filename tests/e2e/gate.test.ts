// pilot gate over what real runs left: its exit codes, what it compares with, and what it writes in CI and nowhere else.

import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createProject, type TestProject } from '../rig/project.ts'
import { shellPipeline } from '../rig/shell-pipeline.ts'

const REWARD = 'cp "$data" "$out"'

const POLICY = {
  stages: 'all',
  acceptance: { stage: 'accept', output: 'out', criteria: ['exact tokens'] },
  metrics: [
    {
      name: 'reward',
      stage: 'evaluate',
      output: 'out',
      field: 'reward',
      interval: 'ends',
      change: { min: -0.1 },
    },
  ],
}

function project(files: Readonly<Record<string, string>> = {}): TestProject {
  return createProject({
    'pipeline.ts': shellPipeline({
      evaluate: { sh: REWARD, inputs: { data: 'data/reward.json' } },
      accept: {
        sh: 'test -s "$x" && cp "$data" "$out"',
        inputs: { x: 'evaluate', data: 'data/verdict.json' },
      },
    }),
    'data/reward.json': '{ "reward": 0.5, "ends": [0.4, 0.6] }',
    'data/verdict.json': verdict('pass'),
    'gate.json': JSON.stringify({ ...POLICY, metrics: [] }),
    'compare.json': JSON.stringify(POLICY),
    ...files,
  })
}

function verdict(of: string): string {
  return JSON.stringify({ criteria: [{ name: 'exact tokens', verdict: of, measured: '96 tokens' }] })
}

const GATE = ['gate', '--policy', 'gate.json']
const COMPARE = ['gate', '--policy', 'compare.json']
/** As outside of GitHub, wherever the tests run. */
const env = { GITHUB_ACTIONS: undefined, GITHUB_STEP_SUMMARY: undefined, GITHUB_OUTPUT: undefined }

test('nothing has run: not established, and the gate runs nothing', async () => {
  using it = project()

  const gate = await it.pilot(GATE, { env })
  const status = await it.pilot(['status', '--json'], { env })

  expect(gate.code).toBe(2)
  expect(gate.stdout).toMatch(/^not established +stage +evaluate +no result: never ran here$/m)
  expect(gate.stdout).toMatch(
    /^not established +criterion +exact tokens +"accept" has no result: waits on evaluate$/m,
  )
  expect(status.stdout).toMatch(/"stage":"evaluate".*"state":"run"/)
})

test('what ran passes; an edit takes the pass away until it ran again', async () => {
  using it = project()
  await it.run([], { env })

  const passed = await it.pilot(GATE, { env })
  it.write({ 'data/reward.json': '{ "reward": 0.6 }' })
  const edited = await it.pilot(GATE, { env })

  expect(passed.code).toBe(0)
  expect(passed.stdout).toMatch(/^pass +stage +evaluate +executed in \d/m)
  expect(passed.stdout).toMatch(/^pass +criterion +exact tokens +96 tokens$/m)
  expect(passed.stdout).toMatch(/\ngate: pass: 3 of 3 checks pass/)
  expect(edited.code).toBe(2)
  expect(edited.stdout).toMatch(/^not established +stage +evaluate +no result: changed: inputs\.data$/m)
})

test('a criterion that fails, and a stage that failed, fail the gate', async () => {
  using criterion = project({ 'data/verdict.json': verdict('fail') })
  using stage = project({ 'data/reward.json': '' })
  await criterion.run([], { env })
  await stage.run(['--keep-going'], { env })

  const [first, second] = [await criterion.pilot(GATE, { env }), await stage.pilot(GATE, { env })]

  expect(first.code).toBe(1)
  expect(first.stdout).toMatch(/^fail +criterion +exact tokens/m)
  expect(second.code).toBe(1)
  expect(second.stdout).toMatch(/^fail +stage +accept +.*exited with 1.*: pilot log accept$/m)
})

test.each([
  [0.45, 0, /base 0\.5; change -0\.05 is at least -0\.1$/m],
  [0.3, 1, /base 0\.5; change -0\.2 is not at least -0\.1$/m],
])(
  'a reward of %j is held against the run before, and against what its gate wrote: %j',
  async (reward, code, line) => {
    using it = project()
    const before = await it.run([], { env })
    const start = before.events[0]
    const runId = start?.type === 'run-start' ? start.runId : ''
    const told = await it.pilot([...COMPARE, '--json'], { env })
    it.write({ 'base.json': told.stdout, 'data/reward.json': JSON.stringify({ reward, ends: [0, 1] }) })
    await it.run([], { env })

    const byRun = await it.pilot([...COMPARE, '--base', runId], { env })
    const byFile = await it.pilot([...COMPARE, '--base', 'base.json'], { env })
    const byNone = await it.pilot(COMPARE, { env })

    expect(JSON.parse(told.stdout)).toMatchObject({ type: 'gate', metrics: { reward: 0.5 } })
    expect(byRun.code).toBe(code)
    expect(byRun.stdout).toMatch(line)
    expect(byFile.stdout).toBe(byRun.stdout)
    expect(byNone.code).toBe(2)
    expect(byNone.stdout).toMatch(/change at least -0\.1 is asked, and no base was named$/m)
  },
)

test.each([
  [[...GATE, '--base', 'nothing'], /"nothing" is neither a file nor a run kept here/],
  [[...GATE, '--base', '../../nothing'], /is neither a file nor a run/],
  [['gate', '--policy', 'none.json'], /the policy cannot be read/],
  [['gate', '--policy', 'data/reward.json'], /the policy is not one:[\s\S]*reward/],
  [['gate', '--policy', 'typo.json'], /there is no stage "evaluat"; did you mean "evaluate"\?/],
  [['gate', '--policy', 'output.json'], /stage "evaluate" has no output "verdict"/],
  [['gate'], /--policy/],
])('%j is a mistake, in words', async (argv, message) => {
  using it = project({
    'typo.json': JSON.stringify({ stages: ['evaluat'] }),
    'output.json': JSON.stringify({
      metrics: [{ name: 'm', stage: 'evaluate', output: 'verdict', field: 'f' }],
    }),
  })

  const gate = await it.pilot(argv, { env })

  expect(gate.code).toBe(2)
  expect(gate.stderr).toMatch(message)
})

test('inside GitHub Actions: summary, annotations at the stage’s line, output; elsewhere none of it', async () => {
  using it = project({ 'data/verdict.json': verdict('fail'), 'summary.md': 'before\n' })
  await it.run([], { env })
  const files = { GITHUB_STEP_SUMMARY: it.path('summary.md'), GITHUB_OUTPUT: it.path('output.txt') }

  const outside = await it.pilot(GATE, { env: { ...files, GITHUB_ACTIONS: undefined } })
  const untouched = it.read('summary.md')
  // The repository is the folder above: what is annotated is named from there.
  const workspace = it.root.slice(0, it.root.lastIndexOf('/'))
  const inside = await it.pilot(GATE, {
    env: { ...files, GITHUB_ACTIONS: 'true', GITHUB_WORKSPACE: workspace },
  })

  expect(untouched).toBe('before\n')
  expect(`${outside.stdout}${outside.stderr}`).not.toContain('::')
  expect(inside.code).toBe(1)
  const name = it.root.slice(workspace.length + 1)
  const line =
    it
      .read('pipeline.ts')
      .split('\n')
      .findIndex((text) => text.includes('s_acceptStage = defineStage(')) + 1
  expect(inside.stderr.trimEnd()).toMatch(
    new RegExp(`^::error file=${name}/pipeline\\.ts,line=${line},title=pilot gate%3A exact tokens%3A fail::`),
  )
  expect(it.read('output.txt')).toBe('verdict=fail\n')
  expect(it.read('summary.md')).toMatch(/^before\n## pilot gate: fail\n\n```mermaid\nflowchart LR\n/)
  expect(it.read('summary.md')).toMatch(/^\| accept \| executed \| .* s \| 1 of 2 pass, failed \|$/m)
})

test('JUnit is written where it is asked for, with the folders above it', async () => {
  using it = project()
  await it.run([], { env })

  await it.pilot([...GATE, '--junit', 'reports/ci/gate.xml'], { env })

  expect(it.read('reports/ci/gate.xml')).toMatch(
    /<testsuites name="pilot gate" tests="3" failures="0" errors="0">/,
  )
})

test('the record of a run that was cut off is read as far as it goes', async () => {
  using it = project()
  const ran = await it.run([], { env })
  const start = ran.events[0]
  const runId = start?.type === 'run-start' ? start.runId : ''
  const path = `artifacts/runs/${runId}/events.ndjson`
  it.write({ [path]: it.read(path).slice(0, -40) })

  const gate = await it.pilot([...COMPARE, '--base', runId], { env })

  expect(gate.code).toBe(0)
})

test('a gate leaves nothing in the project', async () => {
  using it = project()
  await it.run([], { env })
  mkdirSync(it.path('empty'))
  const before = readdirSync(it.root)

  await it.pilot(GATE, { env })

  expect(readdirSync(it.root)).toEqual(before)
  expect(existsSync(it.path('summary.md'))).toBe(false)
})
