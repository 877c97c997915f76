// The executor of this machine: a job with an image in a container, any other as a process.

import type { Executor, JobHandle } from '../model/ports.ts'
import type { HostEnvironment } from './container/runtime.ts'
import { openContainerExecutor } from './container.ts'
import { type LocalOptions, openLocalExecutor } from './local.ts'

export interface MachineOptions extends LocalOptions {
  /** The environment pilot was started with. */
  readonly environment: HostEnvironment
}

export function openMachineExecutor(options: MachineOptions): Executor {
  const local = openLocalExecutor(options)
  const container = openContainerExecutor({ ...options, local })
  const owners = new Map<JobHandle, Executor>()
  return {
    name: 'local',
    async submit(job) {
      const owner = job.image === undefined ? local : container
      const handle = await owner.submit(job)
      owners.set(handle, owner)
      return handle
    },
    async wait(handle) {
      const owner = owners.get(handle)
      if (!owner) throw new TypeError(`no job ${handle} in this executor`)
      const outcome = await owner.wait(handle)
      owners.delete(handle)
      return outcome
    },
    cancel: (handle, how) => owners.get(handle)?.cancel(handle, how),
    reattach: async () => undefined,
    async [Symbol.asyncDispose]() {
      await container[Symbol.asyncDispose]()
      await local[Symbol.asyncDispose]()
    },
  }
}
