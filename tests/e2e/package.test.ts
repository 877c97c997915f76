// The package as users get it: compiled, packed, installed in an empty project on another path.

import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { removeAll } from '../rig/project.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const work = realpathSync(mkdtempSync(join(tmpdir(), 'pilot package ü-')))
const project = join(work, 'an empty project')
afterAll(() => removeAll(work))

beforeAll(() => {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT })
  execFileSync('npm', ['pack', '--ignore-scripts', '--pack-destination', work], { cwd: ROOT, stdio: 'pipe' })
  const [tarball = ''] = readdirSync(work).filter((name) => name.endsWith('.tgz'))
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }\n')
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', join(work, tarball)], {
    cwd: project,
    stdio: 'pipe',
  })
}, 300_000)

test('init, run, edit and why work in it', () => {
  const init = pilot('init')
  const first = pilot('run', '--json')
  const again = pilot('run', '--json')
  writeFileSync(join(project, 'data/text.txt'), 'other words, other words\n')
  const why = pilot('why', 'count')
  const edited = pilot('run', '--json')

  expect(init.status, init.stderr).toBe(0)
  expect(lastLine(first.stdout)).toMatchObject({ type: 'run-end', exit: 0, executed: 2, hits: 0 })
  expect(lastLine(again.stdout)).toMatchObject({ type: 'run-end', exit: 0, executed: 0, hits: 2 })
  expect(why.stdout).toMatch(/inputs\.text: [0-9a-f]{12} -> [0-9a-f]{12}/)
  expect(lastLine(edited.stdout)).toMatchObject({ executed: 2 })
  expect(readFileSync(join(project, 'artifacts/latest/report/report.md'), 'utf8')).toContain('| other | 2 |')
})

test('its types hold for a stranger’s strict TypeScript', () => {
  writeFileSync(
    join(project, 'use.ts'),
    `import { definePipeline, defineStage, file } from 'hessian-pilot'
import { readTrajectories } from 'hessian-pilot/trajectory'
const a = defineStage({ name: 'a', outputs: { out: file('out') }, run: ({ outputs }) => ['touch', outputs.out] })
export default definePipeline({ stages: () => [a({})] })
export const read: (path: string) => AsyncIterable<unknown> = (path) => readTrajectories(path)
// @ts-expect-error an output that was not declared
export const wrong = a({}).outputs.nothing
`,
  )
  const compiled = spawnSync(
    process.execPath,
    [
      join(ROOT, 'node_modules/typescript/bin/tsc'),
      ...[
        '--noEmit',
        '--strict',
        '--module',
        'nodenext',
        '--target',
        'es2024',
        '--skipLibCheck',
        'false',
        'use.ts',
      ],
    ],
    { cwd: project, encoding: 'utf8' },
  )

  expect(compiled.stdout).toBe('')
  expect(compiled.status).toBe(0)
})

const oldNode = findOldNode()

test.skipIf(oldNode === undefined)('an old Node.js gets one line that says what is needed', () => {
  const ran = spawnSync(oldNode ?? '', [join(project, 'node_modules/hessian-pilot/bin/pilot.js'), 'run'], {
    cwd: project,
    encoding: 'utf8',
  })

  expect(ran.status).toBe(3)
  expect(ran.stderr).toMatch(/^pilot needs Node\.js 22\.18 or newer; this is v\d+\.\d+\.\d+\. .*\n$/)
})

interface Finished {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

function pilot(...argv: readonly string[]): Finished {
  const bin = join(project, 'node_modules/.bin/pilot')
  return spawnSync(process.execPath, [bin, ...argv], {
    cwd: project,
    encoding: 'utf8',
    env: { ...process.env, CI: '1' },
  })
}

function lastLine(text: string): unknown {
  return JSON.parse(text.trim().split('\n').at(-1) ?? '')
}

/** A Node.js on this machine, beside the one that runs the tests, that is too old for pilot. */
function findOldNode(): string | undefined {
  const folders = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => dirname(folder) !== join(ROOT, 'node_modules'))
  return folders
    .map((folder) => join(folder, 'node'))
    .filter((path) => existsSync(path))
    .find((path) => {
      const [major = 0] = execFileSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' })
        .split('.')
        .map(Number)
      return major < 22
    })
}
