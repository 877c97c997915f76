// Is there a cache service here, and what does it need: the variables a runner gives to actions, and zstd.

import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute } from 'node:path'
import { PilotError } from '../../model/error.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** @throws PilotError `actions-cache-unavailable` */
export function requireService(environment: Environment): void {
  const address = isSecondVersion(environment) ? 'ACTIONS_RESULTS_URL' : 'ACTIONS_CACHE_URL'
  const missing = [address, 'ACTIONS_RUNTIME_TOKEN'].filter((name) => !environment[name])
  if (missing.length === 0) return
  throw new PilotError({
    code: 'actions-cache-unavailable',
    blame: 'environment',
    what: `there is no GitHub Actions cache here: ${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} not set`,
    hint: 'a runner gives them to actions and not to `run:` steps: call pilot by `uses: ./.github/actions/pilot`, or name another store',
  })
}

/** As the library decides it: the old service where the server is not github.com, whatever the flag says. */
function isSecondVersion(environment: Environment): boolean {
  const server = environment['GITHUB_SERVER_URL'] || 'https://github.com'
  const host = URL.parse(server)?.hostname.toLowerCase() ?? ''
  const isHosted = host === 'github.com' || host.endsWith('.ghe.com') || host.endsWith('.localhost')
  return isHosted && Boolean(environment['ACTIONS_CACHE_SERVICE_V2'])
}

/** What to say where the library will fall back to gzip, whose entries are others than those of zstd. */
export function warnOfMissingZstd(environment: Environment, onWarning: (message: string) => void): void {
  const folders = (environment['PATH'] ?? '').split(delimiter).filter(isAbsolute)
  if (folders.some((folder) => isProgram(`${folder}/zstd`))) return
  onWarning(
    'zstd is not on PATH: entries of the Actions cache are packed with gzip, and those that other machines packed with zstd are not found; install zstd on all of them',
  )
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
