// What a command starts that is no descendant of it: a container, which its runtime hands to a supervisor of its own.
// Ending the command does not end that, so the runtime is asked to.

import { spawn } from 'node:child_process'

export interface Outside {
  /** Program and arguments that end and remove it, whatever state it is in; nothing to remove is no fault. */
  readonly remove: readonly string[]
}

const ROUNDS = 3
const LIMIT_MS = 20_000

/** Never rejects: what cannot be asked cannot be helped. */
export async function removeOutside(
  { remove }: Outside,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) if ((await run(remove, environment)) === 0) return
}

function run(
  [program = '', ...rest]: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<number | null> {
  return new Promise((resolve) => {
    const options = { cwd: '/', env, detached: true, stdio: 'ignore', timeout: LIMIT_MS } as const
    const child = spawn(program, rest, { ...options, killSignal: 'SIGKILL' })
    child.once('error', () => resolve(null))
    child.once('exit', (code) => resolve(code))
  })
}
