// A runner of workflows on this machine: act, without containers and without the network. It has a cache service of
// its own, of version 1.

import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Scratch } from './scratch.ts'
import { programIn, unpackWheels } from './wheel-tools.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface ActRun {
  readonly code: number
  /** What the steps of a job printed, line by line, without act's own words. None where the job did not run: act skips
   *  a job that it has no runner for, and is content. */
  readonly lines: (job: string) => readonly string[]
  /** All of it, for messages. */
  readonly text: string
}

/** Runs a workflow of tests/rig/workflows in a repository that has it and the action, and nothing else. */
export async function runWorkflow(
  scratch: Scratch,
  workflow: string,
  variables: Readonly<Record<string, string>>,
): Promise<ActRun> {
  const act = programIn(unpackWheels('act'), 'act')
  const repository = scratch.path('repository')
  makeRepository(repository, workflow)
  const settings = scratch.path('settings')
  // One that is empty: else act asks which images to use.
  scratch.write('settings/act/actrc', '')
  const words = [
    ...['push', '-W', `.github/workflows/${workflow}`, '--json', '--pull=false'],
    ...['-P', 'ubuntu-latest=-self-hosted'],
    ...['--artifact-server-path', scratch.path('artifacts'), '--artifact-server-addr', '127.0.0.1'],
    ...['--cache-server-path', scratch.path('cache'), '--cache-server-addr', '127.0.0.1'],
    ...['--action-cache-path', scratch.path('actions'), '--artifact-server-port', '0'],
    ...Object.entries(variables).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
  ]
  const env = {
    ...process.env,
    PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
    XDG_CACHE_HOME: scratch.path('xdg'),
    XDG_CONFIG_HOME: settings,
    DOCKER_HOST: 'unix:///nonexistent',
  }
  const { code, text } = await new Promise<{ readonly code: number; readonly text: string }>((resolve) => {
    const options = { cwd: repository, env, timeout: 120_000, maxBuffer: 1 << 26 }
    execFile(act, words, options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, text: stdout + stderr }),
    )
  })
  return { code, text, lines: (job) => outputOf(text, job) }
}

function makeRepository(root: string, workflow: string): void {
  mkdirSync(join(root, '.github/workflows'), { recursive: true })
  cpSync(join(ROOT, 'tests/rig/workflows', workflow), join(root, '.github/workflows', workflow))
  cpSync(join(ROOT, '.github/actions'), join(root, '.github/actions'), { recursive: true })
  // The action is an ES module by the package it lies in, as in the checkout.
  cpSync(join(ROOT, 'package.json'), join(root, 'package.json'))
  const git = (...words: readonly string[]) =>
    execFileSync('git', ['-C', root, ...words], { stdio: 'ignore' })
  git('init', '--initial-branch', 'main')
  git('add', '.')
  const author = ['-c', 'user.name=Test', '-c', 'user.email=test@localhost']
  git(...author, 'commit', '--no-gpg-sign', '--message', 'all')
}

interface ActLine {
  readonly jobID?: string
  readonly raw_output?: boolean
  readonly msg?: string
}

function outputOf(text: string, job: string): readonly string[] {
  return text.split('\n').flatMap((line) => {
    if (!line.startsWith('{')) return []
    const { jobID: name, raw_output: isRaw, msg = '' }: ActLine = JSON.parse(line)
    return isRaw && name === job ? msg.trimEnd().split('\n') : []
  })
}
