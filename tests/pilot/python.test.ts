// The stages' Python: ruff, mypy and pytest in an environment made by the stages themselves from the lock of the tests.

import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createScratch } from '../rig/scratch.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CONFIG = ['--config', 'tests/python/pyproject.toml']
const PROGRAMS = ['base', 'ppo-step', 'reload', 'evaluate', 'audit', 'accept'].map(
  (stage) => `stages/${stage}`,
)

const scratch = createScratch()
afterAll(() => scratch[Symbol.dispose]())
const environment = {
  ...process.env,
  TMPDIR: scratch.path('tmp'),
  PILOT_MACHINE_DIR: scratch.path('machine'),
  RUFF_NO_CACHE: 'true',
}
beforeAll(() => {
  mkdirSync(environment.TMPDIR)
  mkdirSync(environment.PILOT_MACHINE_DIR)
  const lock = 'locks/calculator/requirements-test.txt'
  const made = run('stages/sync/sync.ts', '3.12', lock, 'locks/tools', 'stages/launcher', scratch.path('env'))
  expect(made.status, made.stderr).toBe(0)
}, 300_000)

test.each([
  ['ruff finds nothing', ['ruff', 'check', ...CONFIG, 'tests/python', 'stages']],
  ['ruff would format nothing', ['ruff', 'format', '--check', ...CONFIG, 'tests/python', 'stages']],
  [
    'mypy finds nothing, strictly',
    [
      ...['mypy', '--config-file', 'tests/python/pyproject.toml', '--cache-dir', scratch.path('mypy')],
      ...['tests/python', 'stages/lib/pilot_rl', ...PROGRAMS.map((folder) => join(folder, '.'))],
    ],
  ],
  [
    'pytest passes',
    ['pytest', '-p', 'no:cacheprovider', '-c', 'tests/python/pyproject.toml', 'tests/python'],
  ],
])(
  '%s',
  (_, argv) => {
    const ran = run('stages/launcher/launch.ts', scratch.path('env'), 'stages/lib', '-m', ...argv)

    expect(ran.status, ran.stdout + ran.stderr).toBe(0)
  },
  300_000,
)

function run(program: string, ...argv: readonly string[]) {
  return spawnSync(process.execPath, [program, ...argv], { cwd: ROOT, encoding: 'utf8', env: environment })
}
