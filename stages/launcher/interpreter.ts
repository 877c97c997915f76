// Finds a Python interpreter by its absolute path, without any environment being activated: on PATH, and where pyenv,
// uv, conda and the tool caches of CI runners keep theirs.

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { userInfo } from 'node:os'
import { delimiter, isAbsolute, join } from 'node:path'

export interface Interpreter {
  /** Absolute path, links resolved: what a venv made from it points at. */
  readonly path: string
  /** `3.12.1`. */
  readonly version: string
}

export interface Looked {
  readonly path: string
  /** Why it does not fit. */
  readonly why: string
}

export type Found =
  | { readonly interpreter: Interpreter }
  | { readonly interpreter: undefined; readonly looked: readonly Looked[] }

export interface SearchFacts {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** The user's own home: a stage's HOME is another. */
  readonly home: string
  /** Folders of interpreters kept beside the store, as uv lays them out. */
  readonly managed: string
}

/** What a search needs of this machine. @param machineDir `PILOT_MACHINE_DIR` */
export function searchFacts(machineDir: string): SearchFacts {
  return { environment: process.env, home: userInfo().homedir, managed: join(machineDir, 'python') }
}

/** The first CPython of this series (`3.12`) that has the module, where one is named. Candidates are tried in order, and each by running it: a pyenv shim
 *  is there and exits with 127, a broken link is there and does not start. */
export function findInterpreter(series: string, facts: SearchFacts, module?: string): Found {
  const looked: Looked[] = []
  const seen = new Set<string>()
  for (const path of candidates(series, facts)) {
    if (seen.has(path) || !existsSync(path)) continue
    seen.add(path)
    const probed = probe(path)
    if ('why' in probed) looked.push({ path, why: probed.why })
    else if (!probed.version.startsWith(`${series}.`)) looked.push({ path, why: `it is ${probed.version}` })
    else if (module !== undefined && !canImport(path, module))
      looked.push({ path, why: `it lacks ${module}` })
    else return { interpreter: probed }
  }
  return { interpreter: undefined, looked }
}

/** What was looked for and how to get one, for people. */
export function explainMissing(series: string, looked: readonly Looked[]): string {
  const seen =
    looked.length > 0 ? looked.map(({ path, why }) => `  ${path}: ${why}`).join('\n') : '  none was there'
  return `no CPython ${series} was found on this machine. Looked at PILOT_PYTHON, PATH, pyenv, uv, conda and tool caches:
${seen}
Install one (pyenv install ${series}, uv python install ${series}, or your system's package), or set PILOT_PYTHON to its path`
}

function* candidates(series: string, { environment, home, managed }: SearchFacts): Generator<string> {
  const chosen = environment['PILOT_PYTHON']
  if (chosen !== undefined && chosen !== '') {
    if (!isAbsolute(chosen)) throw new Error(`PILOT_PYTHON is "${chosen}": an absolute path is needed`)
    yield chosen
    return
  }
  for (const folder of (environment['PATH'] ?? '').split(delimiter).filter(isAbsolute)) {
    for (const name of [`python${series}`, 'python3', 'python']) yield join(folder, name)
  }
  for (const folder of ['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin'])
    yield join(folder, `python${series}`)
  const pyenv = environment['PYENV_ROOT'] ?? join(home, '.pyenv')
  yield* below(join(pyenv, 'versions'), series)
  yield* below(environment['UV_PYTHON_INSTALL_DIR'] ?? join(home, '.local/share/uv/python'), series)
  yield* below(managed, series)
  for (const root of condaRoots(environment, home)) {
    yield join(root, 'bin', 'python3')
    for (const name of list(join(root, 'envs'))) yield join(root, 'envs', name, 'bin', 'python3')
  }
  for (const root of [
    environment['RUNNER_TOOL_CACHE'],
    environment['AGENT_TOOLSDIRECTORY'],
    '/opt/hostedtoolcache',
  ]) {
    if (!root) continue
    for (const version of list(join(root, 'Python')).filter((name) => name.startsWith(`${series}.`))) {
      for (const arch of list(join(root, 'Python', version)))
        yield join(root, 'Python', version, arch, 'bin', 'python3')
    }
  }
}

/** `<folder>/*3.12*` + `/bin/python3`, the newest patch first. */
function* below(folder: string, series: string): Generator<string> {
  const names = list(folder).filter((name) => `${name}.`.replace(/^\D*-/, '').startsWith(`${series}.`))
  const byPatch = (name: string): number => Number(name.split(`${series}.`)[1]?.match(/^\d+/)?.[0] ?? 0)
  for (const name of names.sort((a, b) => byPatch(b) - byPatch(a))) yield join(folder, name, 'bin', 'python3')
}

function condaRoots(environment: SearchFacts['environment'], home: string): string[] {
  const own = ['miniconda3', 'anaconda3', 'miniforge3', 'mambaforge'].map((name) => join(home, name))
  return [environment['CONDA_PREFIX'] ?? '', environment['CONDA_ROOT'] ?? '', ...own, '/opt/conda'].filter(
    (root) => root !== '',
  )
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

function canImport(path: string, module: string): boolean {
  try {
    execFileSync(path, ['-I', '-c', `import ${module}`], { stdio: 'ignore', timeout: 30_000 })
    return true
  } catch {
    return false
  }
}

const PROBE =
  'import os, platform, sys; print(platform.python_implementation(), platform.python_version(), os.path.realpath(sys.executable), sep="\\n")'

function probe(path: string): Interpreter | { readonly why: string } {
  try {
    // Isolated: neither PYTHONPATH nor the current folder may have a say.
    const text = execFileSync(path, ['-I', '-c', PROBE], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 30_000,
    })
    const [implementation, version, executable] = text.trim().split('\n')
    if (!version || !executable) return { why: 'it answered nothing' }
    if (implementation !== 'CPython') return { why: `it is ${implementation}` }
    return { path: executable, version }
  } catch (error) {
    const status = error instanceof Error && 'status' in error ? error.status : undefined
    return { why: status === 127 ? 'a shim without a version behind it (exit 127)' : 'it does not start' }
  }
}
