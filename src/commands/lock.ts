// pilot lock: runs what the pipeline declares to write its locks, one after another, and locks the images by tag.

import { dirname } from 'node:path'
import { execa } from 'execa'
import { type Flags, readConfig } from '../config.ts'
import { findPipeline, loadPipeline } from '../declare/load.ts'
import { EXIT_CODES, PilotError } from '../model/error.ts'
import { didYouMean } from '../model/near.ts'
import { lockImages } from './lock-images.ts'
import { print } from './session.ts'

export async function lockCommand(
  names: readonly string[],
  flags: Flags & { readonly check?: boolean | undefined },
): Promise<number> {
  const config = readConfig(flags)
  const path = findPipeline(config.cwd)
  const { pipeline } = await loadPipeline(path, config.recipe)
  const { locks, images } = pipeline
  const known = [...Object.keys(locks), ...(images.length > 0 ? [IMAGES] : [])]
  const chosen = names.length > 0 ? names : [...new Set(known)]
  for (const name of chosen) checkName(name, known, path)
  let exit: number = EXIT_CODES.ok
  for (const name of chosen) {
    const root = dirname(path)
    const isCheck = flags.check ?? false
    const code =
      name === IMAGES
        ? await lockImages(images, { root, isCheck, environment: config.environment })
        : await writeLock(locks[name] ?? [], root, isCheck)
    print(code === 0 ? `${name}: ${isCheck ? 'up to date' : 'written'}` : `${name}: failed with ${code}`)
    if (code !== 0) exit = EXIT_CODES.stage
  }
  if (chosen.length === 0) print('this pipeline declares no locks')
  return exit
}

/** The lock of the images named by a tag; there where the pipeline names one so. */
const IMAGES = 'images'

async function writeLock(command: readonly string[], root: string, isCheck: boolean): Promise<number> {
  const argv = command.map((word) => (word === '{node}' ? process.execPath : word))
  const [program = '', ...rest] = [...argv, ...(isCheck ? ['--check'] : [])]
  const options = { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], reject: false } as const
  const { exitCode = 1 } = await execa(program, rest, options)
  return exitCode
}

function checkName(name: string, known: readonly string[], where: string): void {
  if (known.includes(name)) return
  throw new PilotError({
    code: 'unknown-lock',
    blame: 'user',
    what: `the pipeline declares no lock "${name}"${didYouMean(name, known)}`,
    where,
    hint: `it declares: ${known.join(', ') || 'none'}`,
  })
}
