// sync.ts SERIES LOCK TOOLS LAUNCHER OUT: fetches a locked environment by its hashes and keeps it as wheels, not as a venv:
// requirements.txt, wheels/, uv/ (the wheel of uv for this platform) and `python` (the series of the interpreter).
// Sdist-only packages are built once, with build tools from hashes, under a fixed SOURCE_DATE_EPOCH: byte for byte alike.

import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const [series = '', lock = '', tools = '', launcher = '', out = ''] = process.argv.slice(2)
// stages/launcher is an input of this stage: it is wherever that stands.
const load = (name: string): Promise<unknown> => import(`${resolve(launcher)}/${name}`)
const { explainMissing, findInterpreter, searchFacts } = (await load(
  'interpreter.ts',
)) as typeof import('../launcher/interpreter.ts')
const { ensureUv } = (await load('uv.ts')) as typeof import('../launcher/uv.ts')
const { ensureInterpreter } = (await load('venv.ts')) as typeof import('../launcher/venv.ts')

/** 2020-01-01: zip files cannot hold times before 1980. */
const EPOCH = '1577836800'
const machineDir = process.env['PILOT_MACHINE_DIR'] ?? ''

try {
  sync()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
}

function sync(): void {
  const root = resolve(out)
  mkdirSync(join(root, 'wheels'), { recursive: true })
  copyFileSync(resolve(lock), join(root, 'requirements.txt'))
  writeFileSync(join(root, 'python'), `${series}\n`)

  const any = findInterpreter('3', searchFacts(machineDir), 'pip')
  if (!any.interpreter) throw new Error(explainMissing('3 with pip', any.looked))
  console.log(`fetching uv with the pip of ${any.interpreter.path}`)
  download(any.interpreter.path, resolve(tools, 'uv.txt'), join(root, 'uv'))
  const uv = ensureUv(join(root, 'uv'), join(machineDir, 'tools'), any.interpreter.path)

  const interpreter = ensureInterpreter({ root, series, requirements: resolve(lock) }, machineDir)
  console.log(`building with CPython ${interpreter.version} at ${interpreter.path}`)
  const build = mkdtempSync(join(tmpdir(), 'build-'))
  const builder = join(build, 'bin', 'python')
  download(any.interpreter.path, resolve(tools, 'build.txt'), join(build, 'wheels'))
  const buildTools = readdirSync(join(build, 'wheels')).map((name) => join(build, 'wheels', name))
  run(uv, ['--quiet', '--no-config', 'venv', '--allow-existing', '--python', interpreter.path, build])
  run(uv, [
    ...words('--quiet --offline --no-config pip install --no-index --no-deps --python'),
    builder,
    ...buildTools,
  ])

  console.log('fetching the wheels of the lock')
  const pip = words('-m pip wheel -qq --no-deps --require-hashes --no-build-isolation --no-cache-dir')
  run(builder, [...pip, '--requirement', resolve(lock), '--wheel-dir', join(root, 'wheels')])
  console.log(`${readdirSync(join(root, 'wheels')).length} wheels`)
}

/** Fetches the wheels of hashed requirements into a folder. */
function download(interpreter: string, requirements: string, into: string): void {
  const pip = words('-m pip download -qq --no-deps --require-hashes --only-binary :all:')
  run(interpreter, [...pip, '--requirement', requirements, '--dest', into])
}

function words(text: string): readonly string[] {
  return text.split(' ')
}

function run(program: string, argv: readonly string[]): void {
  execFileSync(program, argv, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, SOURCE_DATE_EPOCH: EPOCH },
  })
}
