// launch.ts ENVIRONMENT LIB ARGUMENT…: runs Python with these arguments in the venv of an environment, with LIB on its
// path. An argument `@json:{…}` is replaced by the path of a file that holds the JSON.

import { spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { ensureVenv, openEnvironment } from './venv.ts'

const JSON_PREFIX = '@json:'

function main([environment = '', lib = '', ...argv]: readonly string[]): void {
  const machineDir = process.env['PILOT_MACHINE_DIR']
  if (machineDir === undefined)
    throw new Error('PILOT_MACHINE_DIR is not set: this program is started by pilot')
  const python = ensureVenv(openEnvironment(resolve(environment)), machineDir)
  const child = spawn(python, argv.map(toArgument), {
    stdio: 'inherit',
    env: {
      ...process.env,
      PYTHONPATH: resolve(lib),
      PYTHONDONTWRITEBYTECODE: '1',
      PYTHONUNBUFFERED: '1',
      PYTHONHASHSEED: '0',
    },
  })
  // Signals reach the whole group, Python included; this waits for what it makes of them.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
  child.on('error', fail)
  child.on('close', (code, signal) => {
    process.exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal])
  })
}

function toArgument(argument: string): string {
  if (!argument.startsWith(JSON_PREFIX)) return argument
  const path = join(mkdtempSync(join(tmpdir(), 'json-')), 'params.json')
  writeFileSync(path, argument.slice(JSON_PREFIX.length))
  return path
}

function fail(error: unknown): void {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
}

try {
  main(process.argv.slice(2))
} catch (error) {
  fail(error)
}
