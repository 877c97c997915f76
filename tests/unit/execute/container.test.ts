// The arguments for runtimes and devices that this machine may not have.

import { expect, test } from 'vitest'
import { toLaunch } from '../../../src/execute/container/arguments.ts'
import type { Runtime } from '../../../src/execute/container/runtime.ts'
import type { Job } from '../../../src/model/ports.ts'
import { createJob } from '../../rig/job.ts'

const IMAGE = {
  ref: 'registry.example/box@sha256:00',
  config: 'sha256:11',
  path: '/own',
  variables: ['PATH', 'MODE'],
}
const RUNTIME: Runtime = {
  kind: 'docker',
  command: ['docker', '--context', 'other'],
  environment: { PATH: '/bin', MODE: 'host', DOCKER_HOST: 'unix:///x' },
  init: ['--init'],
  user: ['--user', '7:8'],
  canLimitMemory: true,
}

function launch(fields: Partial<Job>, runtime: Partial<Runtime> = {}) {
  using job = createJob('', { environment: { A: '1' }, ...fields })
  return toLaunch(job.job, 'pilot-x', { ...RUNTIME, ...runtime }, IMAGE)
}

/** Values that follow a word. */
function valuesOf(argv: readonly string[], word: string): readonly string[] {
  return argv.flatMap((at, i) => (at === word ? [argv[i + 1] ?? ''] : []))
}

test('docker gets GPUs as one list, podman as devices', () => {
  const docker = launch({ gpuIds: ['0', 'GPU-7'] })
  const podman = launch({ gpuIds: ['0', 'GPU-7'] }, { kind: 'podman' })

  expect(valuesOf(docker.argv, '--gpus')).toEqual(['"device=0,GPU-7"'])
  expect(valuesOf(podman.argv, '--device')).toEqual(['nvidia.com/gpu=0', 'nvidia.com/gpu=GPU-7'])
})

test('docker unsets what the image sets and the job has not, and the host cannot give it a value', () => {
  const { argv, environment } = launch({})

  expect(valuesOf(argv, '--env')).toEqual(['MODE', 'PILOT_ACTION', 'PATH=/own', 'A=1'])
  expect(environment).toEqual({ PATH: '/bin', DOCKER_HOST: 'unix:///x' })
})

test('memory is limited where it is declared and can be', () => {
  const resources = { cpus: 1, memoryMiB: 64, gpus: 0 }

  expect(valuesOf(launch({ resources }).argv, '--memory')).toEqual(['64m'])
  expect(valuesOf(launch({ resources }, { canLimitMemory: false }).argv, '--memory')).toEqual([])
  expect(valuesOf(launch({}).argv, '--memory')).toEqual([])
})

test('global arguments stand before the subcommand, the command after the image', () => {
  const { argv } = launch({ argv: ['sh', '-c', 'true'] })

  expect(argv.slice(0, 4)).toEqual(['docker', '--context', 'other', 'run'])
  expect(argv.slice(-4)).toEqual([IMAGE.ref, 'sh', '-c', 'true'])
})
