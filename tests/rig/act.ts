// Workflows run by act on this machine, in a repository of the test's own: what runs is the files as they are committed.
// Actions that would be fetched are stood in for. act has a cache service of its own, of version 1.

import { execFileSync, spawn } from 'node:child_process'
import { cpSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { createScratch } from './scratch.ts'
import { programIn, unpackWheels } from './wheel-tools.ts'

export const ROOT: string = fileURLToPath(new URL('../../', import.meta.url))
const ACTION = '.github/actions/pilot'

export interface ActRun {
  readonly code: number | null
  /** Result of each job that ran, by its id; a job that was skipped has none. */
  readonly jobs: Readonly<Record<string, 'success' | 'failure'>>
  /** Results of a job's steps, in order, as `<name>: <result>`. */
  readonly steps: (job: string) => readonly string[]
  /** What a job printed, a line each. */
  readonly lines: (job: string) => readonly string[]
  /** Workflow commands of a job that the runner took, by name: `error`, `summary`, `set-output`. */
  readonly commands: (job: string, name: string) => readonly ActLine[]
  /** All of it, for messages. */
  readonly text: string
}

export interface ActLine {
  readonly jobID?: string
  readonly step?: string
  readonly stage?: string
  readonly stepResult?: string
  readonly jobResult?: 'success' | 'failure'
  readonly command?: string
  readonly raw_output?: boolean
  readonly msg: string
  readonly content?: string
  readonly arg?: string
  readonly kvPairs?: Readonly<Record<string, string>>
}

export interface ActRepository extends Disposable {
  run(workflow: string, event: string, options: ActOptions): Promise<ActRun>
}

export interface ActOptions {
  /** Of the event. */
  readonly payload?: object
  /** Variables of the repository. */
  readonly vars?: Readonly<Record<string, string>>
  /** Environment of every step. */
  readonly env?: Readonly<Record<string, string>>
}

/** @param files of the repository besides the workflows and the action: a pipeline, a policy
 *  @param workflows folder of this repository that has them */
export function createActRepository(
  files: Readonly<Record<string, string>>,
  workflows = '.github/workflows',
): ActRepository {
  const scratch = createScratch()
  for (const [path, content] of Object.entries({ ...BARE, ...files }))
    scratch.write(join('repo', path), content)
  cpSync(join(ROOT, workflows), scratch.path('repo/.github/workflows'), { recursive: true })
  cpSync(join(ROOT, ACTION), scratch.path('repo', ACTION), { recursive: true })
  const git = (...argv: readonly string[]) => execFileSync('git', argv, { cwd: scratch.path('repo') })
  git('init', '--quiet', '--initial-branch', 'main')
  git('remote', 'add', 'origin', `https://github.com/${REPOSITORY}.git`)
  git('add', '--all')
  git('-c', 'user.name=test', '-c', 'user.email=test@example.org', 'commit', '--quiet', '--message', 'all')
  const standIns = fetchedActions().flatMap((uses) => {
    const folder = scratch.path('stand-ins', uses.replaceAll(/[/@]/g, '-'))
    scratch.write(join(folder.slice(scratch.root.length + 1), 'action.yml'), STAND_IN)
    return ['--local-repository', `${uses}=${folder}`]
  })
  const act = programIn(unpackWheels('act'), 'act')
  return {
    async run(workflow, event, { payload = {}, vars = {}, env = {} }) {
      const child = spawn(
        act,
        [
          ...[event, '--json', '--pull=false', '--workflows', `.github/workflows/${workflow}`],
          ...['--cache-server-path', scratch.path('cache'), '--cache-server-addr', '127.0.0.1'],
          ...['--artifact-server-path', scratch.path('artifacts'), '--artifact-server-addr', '127.0.0.1'],
          ...['--artifact-server-port', '0'],
          ...['--eventpath', scratch.write('event.json', JSON.stringify(payload))],
          ...['ubuntu-latest', 'self-hosted', 'gpu'].flatMap((label) => ['-P', `${label}=-self-hosted`]),
          ...Object.entries(vars).flatMap(([name, value]) => ['--var', `${name}=${value}`]),
          ...Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
          ...['--action-cache-path', scratch.path('act'), ...standIns],
        ],
        { cwd: scratch.path('repo'), env: environment(scratch.root), stdio: ['ignore', 'pipe', 'pipe'] },
      )
      const code = new Promise<number | null>((resolve, reject) => {
        child.on('error', reject)
        child.on('close', resolve)
      })
      const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
      return toRun(await code, stdout, stderr)
    },
    [Symbol.dispose]: () => scratch[Symbol.dispose](),
  }
}

export const REPOSITORY = 'acme/tiny'

/** Depends on nothing: `npm ci` links the pilot of this checkout, as it does here. */
const BARE: Readonly<Record<string, string>> = {
  'package.json': JSON.stringify({
    ...{ name: 'tiny', version: '1.0.0', private: true, type: 'module' },
    scripts: {
      prepare: `mkdir -p node_modules/.bin && ln -sf '${join(ROOT, 'bin/pilot.js')}' node_modules/.bin/pilot`,
    },
  }),
  'package-lock.json': JSON.stringify({
    ...{ name: 'tiny', version: '1.0.0', lockfileVersion: 3, requires: true },
    packages: { '': { name: 'tiny', version: '1.0.0' } },
  }),
  '.gitignore': 'node_modules/\nartifacts/\n',
}

const STAND_IN = `name: stand-in
description: does nothing
runs:
  using: composite
  steps:
    - run: echo stood in for
      shell: bash
`

/** Pins of the actions that a runner fetches; act has a checkout of its own. */
function fetchedActions(): readonly string[] {
  const files = ['pilot.yml', 'nightly.yml'].map((name) =>
    readFileSync(join(ROOT, '.github/workflows', name), 'utf8'),
  )
  const pins = files.flatMap((file) => [...file.matchAll(/uses: ([\w-]+\/[\w-]+@[0-9a-f]{40}) /g)])
  return [...new Set(pins.flatMap(([, pin = '']) => (pin.startsWith('actions/checkout@') ? [] : [pin])))]
}

function environment(home: string): NodeJS.ProcessEnv {
  return {
    // The Node.js that runs the tests, also where the machine's own is older.
    PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
    ...{ HOME: home, XDG_CONFIG_HOME: join(home, 'config'), XDG_CACHE_HOME: join(home, 'cache') },
    // No container is started, whatever this machine has.
    DOCKER_HOST: 'unix:///nonexistent',
    NO_COLOR: '1',
  }
}

function toRun(code: number | null, stdout: string, stderr: string): ActRun {
  const all = stdout
    .split('\n')
    .flatMap((line): ActLine[] => (line.startsWith('{') ? [JSON.parse(line)] : []))
  const of = (job: string) => all.filter(({ jobID }) => jobID === job)
  return {
    ...{ code, text: stdout + stderr },
    jobs: Object.fromEntries(
      all.flatMap(({ jobID, jobResult }) => (jobID && jobResult ? [[jobID, jobResult] as const] : [])),
    ),
    steps: (job) =>
      of(job).flatMap(({ step, stage, stepResult, msg }) => {
        // The steps of a composite action have the name of its own step, and another message.
        const isOwn = stage === 'Main' && stepResult && msg.includes(`- Main ${step} [`)
        return isOwn ? [`${step?.replace(/@[0-9a-f]{40}$/, '')}: ${stepResult}`] : []
      }),
    lines: (job) => of(job).flatMap(({ raw_output, msg }) => (raw_output ? msg.trimEnd().split('\n') : [])),
    commands: (job, name) => of(job).filter(({ command }) => command === name),
  }
}
