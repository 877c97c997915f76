// A job in a temporary folder of its own, as the conductor would hand it to an executor.

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { digestOf } from '../../src/model/digest.ts'
import type { Executor, Job, JobOutcome } from '../../src/model/ports.ts'

export interface TestJob extends Disposable {
  readonly job: Job
  readonly lines: readonly string[]
  readonly log: () => string
  path(name: string): string
}

let jobs = 0

/** @param sh shell text; its working directory is empty but for `in/` and `out/` */
export function createJob(sh: string, fields: Partial<Job> = {}): TestJob {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'pilot-job-')))
  const cwd = join(root, 'work')
  for (const folder of ['in', 'out', '../home', '../tmp']) mkdirSync(join(cwd, folder), { recursive: true })
  const lines: string[] = []
  const job: Job = {
    key: digestOf(`job ${++jobs}`),
    stage: 'test',
    attempt: 1,
    runId: '20260101-000000-0000',
    argv: ['sh', '-c', sh],
    cwd,
    environment: {
      PATH: process.env['PATH'] ?? '/usr/bin:/bin',
      HOME: join(root, 'home'),
      TMPDIR: join(root, 'tmp'),
    },
    secrets: [],
    logPath: join(root, 'logs', 'test.log'),
    timeoutMs: undefined,
    resources: { cpus: 1, memoryMiB: 0, gpus: 0 },
    gpuIds: [],
    isolation: 'workdir',
    image: undefined,
    readable: [],
    writable: [],
    network: false,
    onLine: (stream, line) => lines.push(`${stream} ${line}`),
    ...fields,
  }
  return {
    job,
    lines,
    log: () => readFileSync(job.logPath, 'utf8'),
    path: (name) => join(cwd, name),
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}

export async function runJob(executor: Executor, { job }: TestJob): Promise<JobOutcome> {
  return executor.wait(await executor.submit(job))
}
