// uv: the pinned version, from PATH where it is that very one, else from its wheel, which travels with the environment.

import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

/** Path of a uv of the version of this wheel. @param python any Python 3, to unpack the wheel with
 *  @param wheels folder that holds the wheel; @param into folder in which it is unpacked once a version */
export function ensureUv(wheels: string, into: string, python: string): string {
  const wheel = readdirSync(wheels).find((name) => /^uv-[^-]+-.*\.whl$/.test(name))
  if (wheel === undefined) throw new Error(`there is no wheel of uv in ${wheels}`)
  const version = wheel.split('-')[1] ?? ''
  const onPath = findOnPath(version)
  if (onPath !== undefined) return onPath
  const folder = join(into, `uv-${version}`)
  const binary = join(folder, 'uv')
  if (existsSync(binary)) return binary
  mkdirSync(into, { recursive: true })
  const temp = mkdtempSync(join(into, '.uv-'))
  try {
    execFileSync(python, ['-I', '-m', 'zipfile', '-e', join(wheels, wheel), temp], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const scripts = join(temp, `uv-${version}.data`, 'scripts')
    // A zip file's modes are not unpacked.
    chmodSync(join(scripts, 'uv'), 0o755)
    renameInto(scripts, folder)
  } finally {
    rmSync(temp, { recursive: true, force: true })
  }
  return binary
}

function findOnPath(version: string): string | undefined {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter).filter(isAbsolute)) {
    const path = join(folder, 'uv')
    if (existsSync(path) && versionOf(path) === version) return path
  }
  return undefined
}

function versionOf(path: string): string | undefined {
  try {
    return execFileSync(path, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .split(' ')[1]
      ?.trim()
  } catch {
    return undefined
  }
}

/** Renames a finished folder to its place; another process that was faster made the same. */
export function renameInto(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if (!existsSync(to)) throw error
  }
}
