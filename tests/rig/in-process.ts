// Runs the real engine in this process on plain stages: real planning, keys, store and capture, a fake executor.

import type { Project } from '../../src/conduct/project.ts'
import { assembleProject } from '../../src/conduct/project.ts'
import type { Config } from '../../src/config.ts'
import type { RunEvent, StageEnd } from '../../src/model/event.ts'
import type { Executor } from '../../src/model/ports.ts'
import type { Stage } from '../../src/model/stage.ts'
import { run } from '../../src/run.ts'

export interface InProcessRun {
  readonly events: readonly RunEvent[]
  readonly ends: readonly StageEnd[]
  /** Names of the stages executed, sorted. */
  readonly executed: readonly string[]
}

let runs = 0

export function testConfig(root: string, fields: Partial<Config> = {}): Config {
  return {
    cwd: root,
    recipe: undefined,
    selection: { to: [], from: [], only: [], force: [] },
    jobs: 2,
    keepGoing: false,
    environment: { PATH: process.env['PATH'] },
    cpus: 2,
    memoryMiB: 4096,
    remote: {
      address: undefined,
      mode: 'off',
      isOnly: false,
      trust: 'trusted',
      signingKey: undefined,
      policy: undefined,
      builder: undefined,
      beatMs: 5_000,
    },
    ...fields,
  }
}

/** One run of `stages` in the project folder `root`. */
export async function runInProcess(
  root: string,
  stages: readonly Stage[],
  executor: Executor,
  fields: Partial<Config> = {},
): Promise<InProcessRun> {
  const events: RunEvent[] = []
  const runId = `20260101-000000-${(runs++).toString(16).padStart(4, '0')}`
  const never = new AbortController().signal
  using project = await openTestProject(root, stages, runId, (event) => events.push(event), fields)
  await run({
    project,
    executor,
    reporter: { on: (event) => void events.push(event), close: async () => undefined },
    runId,
    now: () => new Date(),
    stop: never,
    kill: never,
  })
  const ends = events.filter((event) => event.type === 'stage-end')
  return {
    events,
    ends,
    executed: ends
      .filter((end) => end.outcome === 'executed')
      .map((end) => end.stage)
      .sort(),
  }
}

export function openTestProject(
  root: string,
  stages: readonly Stage[],
  runId: string,
  onEvent: (event: RunEvent) => void = () => undefined,
  fields: Partial<Config> = {},
): Promise<Project> {
  return assembleProject(
    testConfig(root, fields),
    { root, file: 'pipeline.ts', pipeline: { stages, locks: {}, images: [], checks: {} }, recipe: null },
    { runId, onWarning: (code, message) => onEvent({ type: 'warning', code, message }) },
  )
}
