// A temporary project driven through the real command line: files in, exit code, text and events out.

import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RunEnd, RunEvent, StageEnd } from '../../src/model/event.ts'

const BIN = fileURLToPath(new URL('../../bin/pilot.js', import.meta.url))

export interface Finished {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Ran extends Finished {
  readonly events: readonly RunEvent[]
  readonly end: RunEnd
  /** Outcome of each stage, by name. */
  readonly outcomes: Readonly<Record<string, StageEnd['outcome']>>
  readonly stageEnd: (stage: string) => StageEnd
}

export interface Started {
  readonly process: ChildProcess
  readonly finished: Promise<Finished>
  /** Resolves at the first line on stdout or stderr that matches; rejects when the command ends without one. */
  readonly line: (pattern: RegExp) => Promise<string>
}

export interface TestProject extends Disposable {
  readonly root: string
  write(files: Readonly<Record<string, string>>): void
  read(path: string): string
  path(...parts: readonly string[]): string
  /** Starts a command and does not wait. */
  start(argv: readonly string[], options?: StartOptions): Started
  /** Runs a command to its end. */
  pilot(argv: readonly string[], options?: StartOptions): Promise<Finished>
  /** `pilot run --json …`. */
  run(argv?: readonly string[], options?: StartOptions): Promise<Ran>
}

export interface StartOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** @param files path -> text; @param label part of the folder's name, for names with spaces and such */
export function createProject(files: Readonly<Record<string, string>>, label = 'pilot-test-'): TestProject {
  const root = realpathSync(mkdtempSync(join(tmpdir(), label)))
  const running = new Set<ChildProcess>()
  const launch = (argv: readonly string[], options?: StartOptions): Started => {
    const started = start(root, argv, options)
    running.add(started.process)
    started.process.once('close', () => running.delete(started.process))
    return started
  }
  const project: TestProject = {
    root,
    write: (more) => {
      for (const [path, text] of Object.entries(more)) {
        mkdirSync(dirname(join(root, path)), { recursive: true })
        writeFileSync(join(root, path), text)
      }
    },
    read: (path) => readFileSync(join(root, path), 'utf8'),
    path: (...parts) => join(root, ...parts),
    start: launch,
    pilot: (argv, options) => launch(argv, options).finished,
    run: async (argv = [], options) => toRan(await launch(['run', '--json', ...argv], options).finished),
    [Symbol.dispose]: () => {
      // Of a test that failed before its commands ended; their guards end what they started.
      for (const child of running) child.kill('SIGKILL')
      removeAll(root)
    },
  }
  project.write(files)
  return project
}

/** Stages that pass MEET find the project's folder by it: a place to meet the test. */
function start(root: string, argv: readonly string[], { cwd = root, env }: StartOptions = {}): Started {
  const environment: Record<string, string | undefined> = {
    ...process.env,
    CI: undefined,
    NO_COLOR: '1',
    MEET: root,
    ...env,
  }
  const child = spawn(process.execPath, [BIN, ...argv], {
    cwd,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const texts = { stdout: '', stderr: '' }
  const waiting: (() => void)[] = []
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (chunk: string) => {
      texts[stream] += chunk
      for (const look of [...waiting]) look()
    })
  }
  const finished = new Promise<Finished>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, ...texts }))
  })
  const line = (pattern: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const look = () => {
        const found = `${texts.stdout}\n${texts.stderr}`.split('\n').find((text) => pattern.test(text))
        if (found !== undefined) resolve(found)
      }
      waiting.push(look)
      look()
      finished.then(
        (end) => reject(new Error(`ended with ${end.code} before ${pattern}:\n${end.stdout}${end.stderr}`)),
        reject,
      )
    })
  return { process: child, finished, line }
}

function toRan(finished: Finished): Ran {
  const events = finished.stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line): RunEvent => JSON.parse(line))
  const end = events.at(-1)
  if (end?.type !== 'run-end') throw new Error(`no run-end:\n${finished.stdout}\n${finished.stderr}`)
  const ends = events.filter((event) => event.type === 'stage-end')
  return {
    ...finished,
    events,
    end,
    outcomes: Object.fromEntries(ends.map((event) => [event.stage, event.outcome])),
    stageEnd: (stage) => {
      const found = ends.find((event) => event.stage === stage)
      if (!found) throw new Error(`no stage-end of ${stage}`)
      return found
    },
  }
}

export function removeAll(root: string): void {
  makeWritable(root)
  rmSync(root, { recursive: true, force: true })
}

/** The store makes its trees read-only; whoever is not root must undo that to delete them. */
function makeWritable(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat) return
  chmodSync(path, stat.mode | 0o700)
  if (!stat.isDirectory()) return
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (!entry.isSymbolicLink()) makeWritable(join(path, entry.name))
  }
}
