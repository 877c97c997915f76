// The same promises kept by jobs in a container, and what only a container can promise.

import { afterAll, beforeAll, describe } from 'vitest'
import { openMachineExecutor } from '../../src/execute/machine.ts'
import { noContainers, openRegistry, type TestRegistry } from '../rig/registry.ts'
import { executorContract } from './executor.contract.ts'

describe.skipIf(noContainers !== false)(`in a container${noContainers ? `: ${noContainers}` : ''}`, () => {
  let registry: TestRegistry
  let image: string
  beforeAll(async () => {
    registry = await openRegistry()
    image = registry.push('v1')
  }, 60_000)
  afterAll(() => registry[Symbol.asyncDispose]())

  executorContract({
    open: async (options) =>
      openMachineExecutor({ ...options, environment: { ...process.env, ...registry.environment } }),
    fields: () => ({ image, isolation: 'container' }),
    isolation: 'container',
    // podman sets it, and pilot sets it to one name for all.
    adds: ['HOSTNAME'],
  })
})
