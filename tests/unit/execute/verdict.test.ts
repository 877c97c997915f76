// What the words and the exit code of a container runtime are taken for.

import { expect, test } from 'vitest'
import { isRuntimeWord, toVerdict } from '../../../src/execute/container/verdict.ts'
import { createJob } from '../../rig/job.ts'

const CREATE = 'Error: runc: runc create failed: unable to start container process: exec: "x": '

test.each([
  [125, 'Error: 127.0.0.1/box@sha256:00: image not known', 'infra'],
  [125, 'docker: Error response from daemon: could not select device driver', 'infra'],
  [126, 'Error: workdir "/x" does not exist on container 00', 'infra'],
  [127, `${CREATE}executable file not found in $PATH: OCI runtime attempted to invoke`, 'stage'],
  [126, `${CREATE}permission denied: OCI permission denied`, 'stage'],
  [1, 'ERROR (catatonit:6): failed to exec pid1: No such file or directory', 'stage'],
  [127, '[FATAL tini (7)] exec x failed: No such file or directory', 'stage'],
  [125, undefined, 'stage'],
  [1, 'Error: the stage says so', 'stage'],
  [139, undefined, 'signal'],
  [137, undefined, 'signal'],
])('exit code %i with %j: %s', (exitCode, word, expected) => {
  using job = createJob('', { argv: ['x'] })
  const usage = { wallMs: 1, cpuMs: 0, peakMemoryBytes: 0, method: 'none' } as const
  const failure = { class: 'stage', message: `it exited with ${exitCode}`, exitCode } as const
  const outcome = { failure, usage, log: null, isolation: 'container' } as const

  const verdict = toVerdict(job.job, outcome, word, { hasKilled: () => false })

  expect(word === undefined || isRuntimeWord(word)).toBe(true)
  expect(verdict?.class).toBe(expected)
})
