// An action result as a run would leave it, for tests of what keeps results.

import { type Action, actionDigest } from '../../src/model/action.ts'
import type { Digest } from '../../src/model/digest.ts'
import type { ActionResult } from '../../src/model/result.ts'
import type { Tree } from '../../src/model/tree.ts'

export interface SampleOptions {
  /** The digest of the sample's action by default: what a store checks that is reached by others. */
  readonly key?: Digest
  readonly tree: Tree
  readonly stage?: string
  readonly log?: ActionResult['record']['log']
}

/** A result of `key` with one output, the first file of the tree. */
export function sampleResult({ key, tree, stage = 'sample', log = null }: SampleOptions): ActionResult {
  const file = tree.entries.find((entry) => entry.type === 'file')
  const path = file?.path ?? 'out'
  const action: Action = {
    argv: ['sh', '-c', 'cat {in:src} > {out:out}'],
    inputs: {},
    environment: {},
    outputs: { out: { kind: 'file', path } },
    platform: { os: 'linux', arch: 'x64', libc: 'glibc' },
    tools: {},
    lockfile: null,
    image: null,
    accelerator: {},
  }
  return {
    schema: 'pilot.result.v1',
    actionDigest: key ?? actionDigest(action),
    action,
    tree: tree.digest,
    outputs: {
      out: {
        kind: 'file',
        path,
        digest: file?.digest ?? tree.digest,
        sizeBytes: file?.sizeBytes ?? 0,
        files: 1,
      },
    },
    record: {
      stage,
      attempt: 1,
      runId: '7f3a',
      startedAt: '2026-01-01T00:00:00.000Z',
      usage: { wallMs: 1, cpuMs: 1, peakMemoryBytes: 1024, method: 'sampled' },
      isolation: 'workdir',
      argv: ['sh', '-c', 'cat in/src > out/out'],
      environment: { PATH: '/usr/bin:/bin' },
      image: null,
      host: {
        os: 'linux',
        kernel: '6.1',
        arch: 'x64',
        libc: 'glibc',
        cpu: 'sample',
        cpus: 2,
        memoryBytes: 2 ** 33,
        driver: null,
      },
      log,
      pilotVersion: '0.1.0',
      nodeVersion: 'v24.0.0',
    },
  }
}
