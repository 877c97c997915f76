// The container runtime of this machine: which program, with which arguments, and what it can do.

import { accessSync, constants } from 'node:fs'
import { basename, delimiter, join } from 'node:path'
import { execa } from 'execa'
import { PilotError } from '../../model/error.ts'
import { MARKER } from '../process/table.ts'

export interface Runtime {
  readonly kind: 'podman' | 'docker'
  /** The program and the arguments that stand before every subcommand. */
  readonly command: readonly string[]
  /** What the program itself is started with; nothing of it reaches a container. */
  readonly environment: Readonly<Record<string, string>>
  /** Arguments of `run` that make an init the first process, which passes signals on and collects orphans. */
  readonly init: readonly string[]
  /** Arguments of `run` by which what the container writes is the caller's own. */
  readonly user: readonly string[]
  /** True where a limit on memory can be set. */
  readonly canLimitMemory: boolean
}

export type HostEnvironment = Readonly<Record<string, string | undefined>>

/** The runtime that `PILOT_CONTAINER_RUNTIME` names, else podman or docker, whichever is found.
 *  @throws PilotError `no-container-runtime` */
export async function openRuntime(host: HostEnvironment): Promise<Runtime> {
  const program = findProgram(host)
  const kind = basename(program).includes('docker') ? 'docker' : 'podman'
  const more = (host['PILOT_CONTAINER_ARGS'] ?? '').split(/\s+/).filter((word) => word !== '')
  const command = [program, ...more]
  const environment = toStrings(host)
  const facts = await askRuntime(kind, command, environment)
  return {
    kind,
    command,
    environment,
    init: kind === 'docker' ? ['--init'] : podmanInit(host),
    user: toUser(kind, facts),
    canLimitMemory: facts.canLimitMemory,
  }
}

/** Runs a subcommand that only asks or fetches, to its end. Never rejects. */
export async function ask(
  { command, environment }: Pick<Runtime, 'command' | 'environment'>,
  words: readonly string[],
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const [program = '', ...rest] = [...command, ...words]
  const options = { env: environment, extendEnv: false, stdin: 'ignore', reject: false } as const
  const { exitCode, stdout, stderr, shortMessage } = await execa(program, rest, options)
  return {
    code: exitCode ?? -1,
    stdout,
    stderr: stderr || (exitCode === undefined ? (shortMessage ?? '') : ''),
  }
}

/** What a runtime says without its own decoration: the last line that is not a mere warning. */
export function lastWord(stderr: string): string {
  const lines = stderr.split('\n').map((line) => line.trim())
  const told = lines.filter((line) => line !== '' && !/^time="[^"]*" level=(warning|info)/.test(line))
  return undecorated(told.at(-1) ?? 'it said nothing')
}

function undecorated(line: string): string {
  const fatal = /^time="[^"]*" level=\w+ msg="(.*)"$/.exec(line)?.[1]?.replaceAll('\\"', '"')
  return (fatal ?? line).replace(/^(?:Error: |docker: )+/, '')
}

/** A program on the host's PATH, or undefined. */
export function onPath(name: string, host: HostEnvironment): string | undefined {
  if (name.includes('/')) return isProgram(name) ? name : undefined
  const folders = (host['PATH'] ?? '').split(delimiter).filter((folder) => folder.startsWith('/'))
  return folders.map((folder) => join(folder, name)).find(isProgram)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function findProgram(host: HostEnvironment): string {
  const named = host['PILOT_CONTAINER_RUNTIME'] || undefined
  const [found] = (named ? [named] : ['podman', 'docker']).flatMap((name) => onPath(name, host) ?? [])
  if (found !== undefined) return found
  throw new PilotError({
    code: 'no-container-runtime',
    blame: 'environment',
    what: named
      ? `the container runtime "${named}" (PILOT_CONTAINER_RUNTIME) was not found`
      : 'neither podman nor docker was found on PATH, and a stage with an image needs one',
    hint: 'install podman or docker, or name one by PILOT_CONTAINER_RUNTIME',
  })
}

interface RuntimeFacts {
  readonly isRootless: boolean
  /** True where the caller has more ids than their own to give to a container. */
  readonly hasIds: boolean
  readonly canLimitMemory: boolean
}

async function askRuntime(
  kind: Runtime['kind'],
  command: readonly string[],
  environment: Runtime['environment'],
): Promise<RuntimeFacts> {
  const format = kind === 'docker' ? DOCKER_FACTS : PODMAN_FACTS
  const { code, stdout, stderr } = await ask({ command, environment }, ['info', '--format', format])
  const [rootless = '', memory = '', ids = ''] = stdout.trim().split('\n')
  if (code === 0) {
    return {
      isRootless: /rootless|true/.test(rootless),
      canLimitMemory: /memory|true/.test(memory),
      hasIds: (ids.match(/host_id/g) ?? []).length > 2,
    }
  }
  throw new PilotError({
    code: 'no-container-runtime',
    blame: 'environment',
    what: `${basename(command[0] ?? '')} is here but does not work: ${lastWord(stderr)}`,
    hint: `try it by hand: ${command.join(' ')} info`,
  })
}

/** Lines: whether it is rootless, whether memory can be limited, and podman's ranges of ids. */
const PODMAN_FACTS =
  '{{.Host.Security.Rootless}}\n{{json .Host.CgroupControllers}}\n{{json .Host.IDMappings}}'
const DOCKER_FACTS = '{{json .SecurityOptions}}\n{{.MemoryLimit}}'

/** Whoever runs pilot is who the container runs as: what it writes must be theirs to move and to delete. */
function toUser(kind: Runtime['kind'], { isRootless, hasIds }: RuntimeFacts): readonly string[] {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  // To a rootless runtime the caller is its root, unless podman has ids enough to turn them round.
  if (isRootless && (kind === 'docker' || !hasIds)) return ['--user', '0:0']
  return [...(isRootless ? ['--userns', 'keep-id'] : []), '--user', `${uid}:${gid}`]
}

/** Where podman's packages put its init, then what else can serve as one. */
const PODMAN_INITS = [
  '/usr/libexec/podman/catatonit',
  '/usr/local/libexec/podman/catatonit',
  '/usr/lib/podman/catatonit',
  '/usr/local/lib/podman/catatonit',
  'catatonit',
  'tini-static',
  'docker-init',
]

function podmanInit(host: HostEnvironment): readonly string[] {
  const [found] = PODMAN_INITS.flatMap((name) => onPath(name, host) ?? [])
  return found === undefined ? [] : ['--init', '--init-path', found]
}

/** The host's environment for a program of the host. Each job has a mark of its own. */
export function toStrings(host: HostEnvironment): Readonly<Record<string, string>> {
  const strings: Record<string, string> = {}
  for (const [name, value] of Object.entries(host)) {
    if (value !== undefined && name !== MARKER) strings[name] = value
  }
  return strings
}
