import { mkdirSync, symlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import {
  explainMissing,
  findInterpreter,
  type Interpreter,
  searchFacts,
} from '../../../stages/launcher/interpreter.ts'
import { createScratch, type Scratch } from '../../rig/scratch.ts'

/** A series no machine has: what is found is what the test put there. */
const SERIES = '9.9'

/** A program that answers what CPython of this version would. @returns its path */
function putInterpreter(scratch: Scratch, path: string, version: string): string {
  const file = scratch.path(path)
  return scratch.write(path, `#!/bin/sh\nprintf 'CPython\\n${version}\\n${file}\\n'\n`, 0o755)
}

function putShim(scratch: Scratch, path: string): string {
  return scratch.write(path, '#!/bin/sh\necho "pyenv: python3: command not found" >&2\nexit 127\n', 0o755)
}

function search(scratch: Scratch, environment: Readonly<Record<string, string>> = {}, series = SERIES) {
  return findInterpreter(series, {
    environment,
    home: scratch.path('home'),
    managed: scratch.path('managed'),
  })
}

/** Any Python of this machine. */
function realInterpreter(): Interpreter {
  const found = findInterpreter('3', searchFacts('/nonexistent'))
  if (!found.interpreter) throw new Error(explainMissing('3', found.looked))
  return found.interpreter
}

test.each([
  ['on PATH', 'path/bin/python9.9', { PATH: '<root>/path/bin' }],
  ['on PATH as python3', 'path/bin/python3', { PATH: '<root>/path/bin' }],
  ['of pyenv', 'home/.pyenv/versions/9.9.1/bin/python3', {}],
  ['of a pyenv elsewhere', 'pyenv/versions/9.9.1/bin/python3', { PYENV_ROOT: '<root>/pyenv' }],
  ['of uv', 'home/.local/share/uv/python/cpython-9.9.1-linux-x86_64-gnu/bin/python3', {}],
  ['that uv put beside the store', 'managed/cpython-9.9.1-linux-x86_64-gnu/bin/python3', {}],
  ['of a conda environment', 'home/miniforge3/envs/work/bin/python3', {}],
  ['of the active conda', 'conda/bin/python3', { CONDA_PREFIX: '<root>/conda' }],
  [
    'of the tool cache of GitHub',
    'cache/Python/9.9.1/x64/bin/python3',
    { RUNNER_TOOL_CACHE: '<root>/cache' },
  ],
  [
    'of the tool cache of Azure',
    'cache/Python/9.9.1/x64/bin/python3',
    { AGENT_TOOLSDIRECTORY: '<root>/cache' },
  ],
])('an interpreter %s is found without activation', (_, path, environment: Record<string, string>) => {
  using scratch = createScratch()
  const expected = putInterpreter(scratch, path, '9.9.1')
  const filled = Object.entries(environment).map(([name, value]) => [
    name,
    value.replace('<root>', scratch.root),
  ])

  const found = search(scratch, Object.fromEntries(filled))

  expect(found).toEqual({ interpreter: { path: expected, version: '9.9.1' } })
})

test('a pyenv shim that exits with 127 is passed over for the version behind it', () => {
  using scratch = createScratch()
  const shim = putShim(scratch, 'home/.pyenv/shims/python3')
  const expected = putInterpreter(scratch, 'home/.pyenv/versions/9.9.1/bin/python3', '9.9.1')

  const found = search(scratch, { PATH: dirname(shim) })

  expect(found.interpreter?.path).toBe(expected)
})

test('the newest patch is taken, by number and not by text', () => {
  using scratch = createScratch()
  for (const version of ['9.9.1', '9.9.9', '9.9.10'])
    putInterpreter(scratch, `home/.pyenv/versions/${version}/bin/python3`, version)

  expect(search(scratch).interpreter?.version).toBe('9.9.10')
})

test('PILOT_PYTHON is the only one that counts where it is set', () => {
  using scratch = createScratch()
  putInterpreter(scratch, 'home/.pyenv/versions/9.9.1/bin/python3', '9.9.1')
  const other = putInterpreter(scratch, 'other/python', '9.8.0')

  expect(search(scratch, { PILOT_PYTHON: other })).toEqual({
    interpreter: undefined,
    looked: [{ path: other, why: 'it is 9.8.0' }],
  })
  expect(() => search(scratch, { PILOT_PYTHON: 'python3' })).toThrow(
    'PILOT_PYTHON is "python3": an absolute path is needed',
  )
})

test('a link to a real interpreter is followed to where it is', () => {
  using scratch = createScratch()
  const real = realInterpreter()
  mkdirSync(scratch.path('bin'))
  symlinkSync(real.path, scratch.path('bin/python'))

  expect(search(scratch, { PILOT_PYTHON: scratch.path('bin/python') }, '3').interpreter).toEqual(real)
})

test('an interpreter without the module asked for does not fit', () => {
  const { path } = realInterpreter()
  const facts = { environment: { PILOT_PYTHON: path }, home: '/nonexistent', managed: '/nonexistent' }

  expect(findInterpreter('3', facts, 'zipfile').interpreter?.path).toBe(path)
  expect(findInterpreter('3', facts, 'no_such_module')).toMatchObject({
    looked: [{ path, why: 'it lacks no_such_module' }],
  })
})

test('where none fits, the error says what was looked at, why not, and how to get one', () => {
  using scratch = createScratch()
  const shim = putShim(scratch, 'bin/python9.9')
  const old = putInterpreter(scratch, 'bin/python3', '9.8.7')
  const broken = scratch.write('bin/python', '#!/nonexistent/program\n', 0o755)

  const found = search(scratch, { PATH: scratch.path('bin') })

  expect(found.interpreter).toBeUndefined()
  // Of the machine itself there may be more, such as a conda under /opt.
  const looked = found.interpreter ? [] : found.looked.filter(({ path }) => path.startsWith(scratch.root))
  expect(explainMissing(SERIES, looked)).toBe(
    `no CPython 9.9 was found on this machine. Looked at PILOT_PYTHON, PATH, pyenv, uv, conda and tool caches:
  ${shim}: a shim without a version behind it (exit 127)
  ${old}: it is 9.8.7
  ${broken}: it does not start
Install one (pyenv install 9.9, uv python install 9.9, or your system's package), or set PILOT_PYTHON to its path`,
  )
})
