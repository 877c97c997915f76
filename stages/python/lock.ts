// lock.ts FOLDER [--check]: writes the hashed requirements of a folder of locks/. From pyproject.toml: uv.lock,
// requirements.txt and requirements-test.txt (with the group `test`); from each <name>.in: <name>.txt.
// They hold hashes and no URLs, so they are the same behind every mirror. What is locked stays as it is while the
// declaration allows it. With --check nothing is written: exit 1 where something would change.

import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { explainMissing, findInterpreter, searchFacts } from '../launcher/interpreter.ts'
import { ensureUv } from '../launcher/uv.ts'

const [folder = '', flag] = process.argv.slice(2)
const SERIES = '3.12'
const temp = mkdtempSync(join(tmpdir(), 'lock-'))
try {
  process.exitCode = lock(resolve(folder), flag === '--check')
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
} finally {
  rmSync(temp, { recursive: true, force: true })
}

function lock(from: string, isCheck: boolean): number {
  const work = join(temp, basename(from))
  cpSync(from, work, { recursive: true })
  const uv = findUv(resolve(from, '../tools/uv.txt'))
  const made = existsSync(join(work, 'pyproject.toml')) ? lockProject(uv, work) : compileEach(uv, work)
  const changed = made.filter((name) => !isSame(join(work, name), join(from, name)))
  for (const name of changed) console.log(`${isCheck ? 'out of date' : 'wrote'}: ${join(folder, name)}`)
  if (isCheck) return changed.length > 0 ? 1 : 0
  for (const name of changed) copyFileSync(join(work, name), join(from, name))
  // The lock behind the requirements also names the index it was made with, so it is not compared.
  if (changed.length > 0 && existsSync(join(work, 'uv.lock')))
    copyFileSync(join(work, 'uv.lock'), join(from, 'uv.lock'))
  return 0
}

function lockProject(uv: string, work: string): readonly string[] {
  run(uv, work, 'lock', '--quiet')
  const exported =
    'export --quiet --frozen --format requirements-txt --no-header --no-annotate --no-emit-project'.split(' ')
  run(uv, work, ...exported, '--no-default-groups', '--output-file', 'requirements.txt')
  run(uv, work, ...exported, '--group', 'test', '--output-file', 'requirements-test.txt')
  return ['requirements.txt', 'requirements-test.txt']
}

function compileEach(uv: string, work: string): readonly string[] {
  const compile = `pip compile --quiet --generate-hashes --no-header --no-annotate --allow-unsafe --python-version ${SERIES}`
  return readdirSync(work)
    .filter((name) => name.endsWith('.in'))
    .map((name) => {
      const made = name.replace(/\.in$/, '.txt')
      run(uv, work, ...compile.split(' '), name, '--output-file', made)
      return made
    })
}

/** The pinned uv; where it is not on PATH, from its wheel by hash. */
function findUv(requirements: string): string {
  const found = findInterpreter('3', searchFacts(temp), 'pip')
  if (!found.interpreter) throw new Error(explainMissing('3 with pip', found.looked))
  const download = '-m pip download -qq --no-deps --require-hashes --only-binary :all:'.split(' ')
  const wheels = join(temp, 'uv')
  execFileSync(found.interpreter.path, [...download, '--requirement', requirements, '--dest', wheels], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  return ensureUv(wheels, temp, found.interpreter.path)
}

function run(uv: string, cwd: string, ...argv: readonly string[]): void {
  // The interpreter is only asked for its markers; the environment is made elsewhere.
  const found = findInterpreter(SERIES, searchFacts(temp))
  const python = found.interpreter ? { UV_PYTHON: found.interpreter.path } : {}
  execFileSync(uv, argv, { cwd, stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, ...python } })
}

function isSame(left: string, right: string): boolean {
  return existsSync(left) && existsSync(right) && readFileSync(left).equals(readFileSync(right))
}
