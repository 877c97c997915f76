// pilot lock: runs what the pipeline declares to write its locks, one after another.

import { dirname } from 'node:path'
import { execa } from 'execa'
import { type Flags, readConfig } from '../config.ts'
import { findPipeline, loadPipeline } from '../declare/load.ts'
import { EXIT_CODES, PilotError } from '../model/error.ts'
import { didYouMean } from '../model/near.ts'
import { print } from './session.ts'

export async function lockCommand(
  names: readonly string[],
  flags: Flags & { readonly check?: boolean | undefined },
): Promise<number> {
  const config = readConfig(flags)
  const path = findPipeline(config.cwd)
  const { pipeline } = await loadPipeline(path, config.recipe)
  const { locks } = pipeline
  const chosen = names.length > 0 ? names : Object.keys(locks)
  for (const name of chosen) checkName(name, locks, path)
  let exit: number = EXIT_CODES.ok
  for (const name of chosen) {
    const argv = (locks[name] ?? []).map((word) => (word === '{node}' ? process.execPath : word))
    const [program = '', ...rest] = [...argv, ...(flags.check ? ['--check'] : [])]
    const options = { cwd: dirname(path), stdio: ['ignore', 'inherit', 'inherit'], reject: false } as const
    const { exitCode: code = 1 } = await execa(program, rest, options)
    print(code === 0 ? `${name}: ${flags.check ? 'up to date' : 'written'}` : `${name}: failed with ${code}`)
    if (code !== 0) exit = EXIT_CODES.stage
  }
  if (chosen.length === 0) print('this pipeline declares no locks')
  return exit
}

function checkName(name: string, locks: Readonly<Record<string, readonly string[]>>, where: string): void {
  if (Object.hasOwn(locks, name)) return
  throw new PilotError({
    code: 'unknown-lock',
    blame: 'user',
    what: `the pipeline declares no lock "${name}"${didYouMean(name, Object.keys(locks))}`,
    where,
    hint: `it declares: ${Object.keys(locks).join(', ') || 'none'}`,
  })
}
