// The calculator pilot itself, whole and real, in a copy of the project: the index is asked, rollouts go through the
// upstream's gateway, a policy is updated. Nothing is known beforehand of how the verdict turns out.

import { cpSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createProject, type Ran } from '../rig/project.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const project = createProject({}, 'pilot calculator ü-')
afterAll(() => project[Symbol.dispose]())

let first: Ran
beforeAll(async () => {
  for (const name of ['pipeline.ts', 'stages', 'recipes', 'locks'])
    cpSync(join(ROOT, name), project.path(name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), project.path('node_modules'))
  first = await project.run(['--to', 'evaluate'])
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

test('a second run executes nothing, and needs no network', async () => {
  const nowhere = 'http://127.0.0.1:9/simple'
  const offline = { PIP_INDEX_URL: nowhere, UV_DEFAULT_INDEX: nowhere, PIP_NO_INDEX: '1' }

  const again = await project.run(['--to', 'evaluate'], { env: offline })

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
