// A locked environment from the index to a running Python: `sync` and the launcher as the stages use them. The lock is
// one package of the pilot's that comes as source alone, so that building is part of it.

import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createScratch, type Scratch } from '../rig/scratch.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PYTHON = join(ROOT, 'stages/launcher')
const REQUIREMENT = /^antlr4-python3-runtime==.*\\\n\s+--hash=sha256:([0-9a-f]{64})\n/m

const scratch = createScratch()
afterAll(() => scratch[Symbol.dispose]())
const locked =
  REQUIREMENT.exec(readFileSync(join(ROOT, 'locks/calculator/requirements.txt'), 'utf8'))?.[0] ?? ''
let first: SpawnSyncReturns<string>
beforeAll(() => {
  first = sync('first', locked)
}, 120_000)

/** Runs the program of the stage; its output is `<name>/environment`. */
function sync(name: string, requirements: string): SpawnSyncReturns<string> {
  const lock = scratch.write(`${name}/requirements.txt`, requirements)
  const out = scratch.path(name, 'environment')
  return spawnSync(
    process.execPath,
    [join(ROOT, 'stages/sync/sync.ts'), '3.12', lock, join(ROOT, 'locks/tools'), PYTHON, out],
    { encoding: 'utf8', env: stageEnvironment(name) },
  )
}

function stageEnvironment(name: string): NodeJS.ProcessEnv {
  const folders = { TMPDIR: scratch.path(name, 'tmp'), PILOT_MACHINE_DIR: scratch.path(name, 'machine') }
  for (const folder of Object.values(folders)) mkdirSync(folder, { recursive: true })
  return { ...process.env, ...folders }
}

/** No index answers here: who asks one fails. */
const NOWHERE = 'http://127.0.0.1:9/simple'
const OFFLINE = { PIP_INDEX_URL: NOWHERE, UV_DEFAULT_INDEX: NOWHERE, PIP_NO_INDEX: '1' }

function launcher(name: string, code: string, ...argv: readonly string[]) {
  const lib = scratch.path('lib')
  const words = [scratch.path('first/environment'), lib, '-c', code, ...argv]
  return {
    argv: [join(PYTHON, 'launch.ts'), ...words],
    options: { cwd: scratch.root, env: { ...stageEnvironment(name), ...OFFLINE } },
  }
}

function launch(name: string, code: string, ...more: readonly string[]): SpawnSyncReturns<string> {
  const { argv, options } = launcher(name, code, ...more)
  return spawnSync(process.execPath, argv, { ...options, encoding: 'utf8' })
}

function launchBeside(name: string, code: string): Promise<{ readonly code: number | null; stdout: string }> {
  const { argv, options } = launcher(name, code)
  const child = spawn(process.execPath, argv, { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (exit) => resolve({ code: exit, stdout }))
  })
}

/** Path -> sha256 of all files below a folder. */
function digests(folder: string): Readonly<Record<string, string>> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const rows = files.map((entry) => {
    const path = join(entry.parentPath, entry.name)
    return [path.slice(folder.length), createHash('sha256').update(readFileSync(path)).digest('hex')] as const
  })
  return Object.fromEntries(rows.sort())
}

test('an environment is the same bytes however often it is fetched and built', () => {
  const again = sync('again', locked)

  expect(first.stderr).toBe('')
  expect([first.status, again.status]).toEqual([0, 0])
  const files = digests(scratch.path('first/environment'))
  expect(Object.keys(files)).toEqual([
    '/python',
    '/requirements.txt',
    expect.stringMatching(/^\/uv\/uv-.*\.whl$/),
    expect.stringMatching(/^\/wheels\/antlr4_python3_runtime-.*\.whl$/),
  ])
  expect(digests(scratch.path('again/environment'))).toEqual(files)
})

test('a package with another hash than the lock says is an error with both', () => {
  const hash = REQUIREMENT.exec(locked)?.[1] ?? ''
  const other = '0'.repeat(64)

  const { status, stderr } = sync('other', locked.replace(hash, other))

  expect(status).toBe(1)
  expect(stderr).toMatch(new RegExp(`antlr4-python3-runtime[^]*Expected sha256 ${other}\\s+Got\\s+${hash}`))
})

test('the launcher makes the venv without network, hands its parameters over and passes the exit code on', () => {
  scratch.write('lib/helper.py', 'ANSWER = 41\n')
  const code = `import json, sys, antlr4, helper
print(sys.prefix, json.load(open(sys.argv[2])), antlr4.__name__)
sys.exit(helper.ANSWER + 1)`

  const { status, stdout, stderr } = launch('launch', code, '--params', '@json:{"seed":[1,"ü"]}')

  expect(stderr).toBe('')
  expect(stdout).toContain("{'seed': [1, 'ü']} antlr4")
  expect(stdout.startsWith(join(scratch.path('launch/machine'), 'venvs'))).toBe(true)
  expect(status).toBe(42)
})

test('a Python that dies by a signal is no success', () => {
  const { status } = launch('launch', 'import os, signal; os.kill(os.getpid(), signal.SIGKILL)')

  expect(status).toBe(128 + 9)
})

test('a venv whose interpreter is gone is made again', () => {
  const prefix = launch('moved', 'import sys; print(sys.prefix)').stdout.trim()
  rmSync(join(prefix, 'bin/python'))
  symlinkSync('/nonexistent/python', join(prefix, 'bin/python'))

  const after = launch('moved', 'import antlr4, sys; print(sys.prefix)')

  expect(after.stderr).toBe('')
  expect(after.stdout.trim()).toBe(prefix)
})

test('launchers at the same time make one venv, and each runs in it', async () => {
  const code = 'import antlr4, sys; print(sys.prefix)'

  const ran = await Promise.all([1, 2, 3].map(() => launchBeside('beside', code)))

  expect(ran.map((each) => each.code)).toEqual([0, 0, 0])
  expect(new Set(ran.map((each) => each.stdout)).size).toBe(1)
  const venvs = venvsOf(scratch, 'beside')
  expect(venvs.map((name) => realpathSync(name))).toEqual([ran[0]?.stdout.trim()])
})

function venvsOf(folder: Scratch, name: string): readonly string[] {
  const root = folder.path(name, 'machine/venvs')
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(root, entry.name))
}
