// The venv of this machine, made offline from the wheels of an environment. A venv holds absolute paths, so it is
// never kept as an output: it is made per machine, named by lock and interpreter, and checked before each use.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { explainMissing, findInterpreter, type Interpreter, searchFacts } from './interpreter.ts'
import { ensureUv } from './uv.ts'
import { withLock } from './with-lock.ts'

/** An environment as `sync` keeps it: `requirements.txt` (hashed, no URLs), `wheels/`, `python` (the series), `uv/`. */
export interface EnvironmentFolder {
  readonly root: string
  readonly series: string
  readonly requirements: string
}

export function openEnvironment(root: string): EnvironmentFolder {
  const series = readFileSync(join(root, 'python'), 'utf8').trim()
  return { root, series, requirements: join(root, 'requirements.txt') }
}

/** Path of the venv's interpreter: of the one that is there, or of a new one. Safe beside other processes. */
export function ensureVenv(environment: EnvironmentFolder, machineDir: string): string {
  const interpreter = ensureInterpreter(environment, machineDir)
  const folder = join(machineDir, 'venvs', nameOf(environment, interpreter))
  const python = join(folder, 'bin', 'python')
  if (isUsable(folder, python, interpreter)) return python
  mkdirSync(join(machineDir, 'venvs'), { recursive: true })
  return withLock(`${folder}.lock`, () => {
    if (isUsable(folder, python, interpreter)) return python
    rmSync(folder, { recursive: true, force: true })
    makeVenv(environment, machineDir, interpreter, folder)
    return python
  })
}

/** Lock and interpreter: a venv of another of either is another. */
function nameOf(environment: EnvironmentFolder, { path, version }: Interpreter): string {
  const { ino, mtimeMs } = statSync(path)
  const identity = [readFileSync(environment.requirements, 'utf8'), path, version, ino, mtimeMs]
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 16)
}

/** Written last: a venv without it was not finished. */
const DONE = 'pilot-done'

function isUsable(folder: string, python: string, { version }: Interpreter): boolean {
  if (!existsSync(join(folder, DONE))) return false
  try {
    const text = execFileSync(python, ['-I', '-c', 'import platform; print(platform.python_version())'], {
      encoding: 'utf8',
    })
    return text.trim() === version
  } catch {
    return false
  }
}

function makeVenv(
  environment: EnvironmentFolder,
  machineDir: string,
  interpreter: Interpreter,
  folder: string,
): void {
  const uv = ensureUv(join(environment.root, 'uv'), join(machineDir, 'tools'), interpreter.path)
  const run = (...argv: readonly string[]): void => {
    // A stage's own output begins after this; uv says nothing when all is well.
    execFileSync(uv, ['--quiet', '--offline', '--no-config', ...argv], {
      stdio: ['ignore', 2, 2],
      env: uvEnvironment(machineDir),
    })
  }
  run('venv', '--python', interpreter.path, folder)
  // The wheels themselves and no lock: of a package that was built, the lock holds the hash of its source.
  const wheels = join(environment.root, 'wheels')
  const files = readdirSync(wheels).map((name) => join(wheels, name))
  run('pip', 'install', '--python', join(folder, 'bin', 'python'), '--no-index', '--no-deps', ...files)
  writeFileSync(join(folder, DONE), '')
}

/** uv keeps its cache beside the venvs: on one file system with them it links instead of copying. */
export function uvEnvironment(machineDir: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    UV_CACHE_DIR: join(machineDir, 'uv-cache'),
    UV_PYTHON_INSTALL_DIR: join(machineDir, 'python'),
  }
}

/** The interpreter of an environment; one that uv brings, where none is found and that is allowed. */
export function ensureInterpreter({ root, series }: EnvironmentFolder, machineDir: string): Interpreter {
  const first = findInterpreter(series, searchFacts(machineDir))
  if (first.interpreter) return first.interpreter
  const missing = explainMissing(series, first.looked)
  if (process.env['PILOT_PYTHON_DOWNLOADS'] === 'never') throw new Error(missing)
  const any = findInterpreter('3', searchFacts(machineDir))
  if (!any.interpreter) throw new Error(missing)
  const uv = ensureUv(join(root, 'uv'), join(machineDir, 'tools'), any.interpreter.path)
  try {
    execFileSync(uv, ['--no-config', 'python', 'install', series], {
      stdio: ['ignore', 2, 2],
      env: uvEnvironment(machineDir),
    })
  } catch {
    throw new Error(
      `${missing}\n(uv could not bring one either: its words are above; PILOT_PYTHON_DOWNLOADS=never keeps it from trying)`,
    )
  }
  const second = findInterpreter(series, searchFacts(machineDir))
  if (second.interpreter) return second.interpreter
  throw new Error(missing)
}
