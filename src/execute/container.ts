// The container executor: a job in its image, by `podman run` or `docker run` as a guarded job of the local executor.
// What may be seen in it is what is mounted; why so: docs/decisions/0004.

import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { PilotError } from '../model/error.ts'
import type { Executor, Job, JobHandle, JobOutcome } from '../model/ports.ts'
import { toLaunch } from './container/arguments.ts'
import { type ImageFacts, openImages } from './container/image.ts'
import { type HostEnvironment, openRuntime, type Runtime } from './container/runtime.ts'
import { isRuntimeWord, toVerdict } from './container/verdict.ts'
import type { LocalExecutor } from './local.ts'
import { openOomWatch, readMachineOomKills } from './outcome.ts'

export interface ContainerOptions {
  /** Runs the runtime's program. Stays the caller's. */
  readonly local: LocalExecutor
  /** What the runtime is started with; `PILOT_CONTAINER_RUNTIME` and `PILOT_CONTAINER_ARGS` are read from it. */
  readonly environment: HostEnvironment
  readonly onWarning?: (code: string, message: string) => void
}

interface Contained {
  readonly job: Job
  /** How it was stopped, if it was; before there is something to stop, that it must not begin. */
  stopped: 'term' | 'kill' | undefined
  /** Stops what runs of it now. */
  stop: (how: 'term' | 'kill') => void
}

const NO_USAGE = { wallMs: 0, cpuMs: 0, peakMemoryBytes: 0, method: 'none' } as const

/** Opens the executor of jobs with an image. The runtime is looked for when the first job comes. */
export function openContainerExecutor(options: ContainerOptions): Executor {
  const { local, onWarning = () => {} } = options
  const jobs = new Map<JobHandle, { readonly contained: Contained; readonly ended: Promise<JobOutcome> }>()
  const images = openImages(local)
  const oom = openOomWatch(readMachineOomKills)
  let runtime: Promise<Runtime> | undefined
  let started = 0

  function theRuntime(): Promise<Runtime> {
    runtime ??= openRuntime(options.environment).then((found) => {
      if (found.init.length === 0) onWarning('no-init', NO_INIT)
      return found
    })
    return runtime
  }

  async function bringUp(contained: Contained): Promise<JobOutcome> {
    const { job } = contained
    const found = await theRuntime()
    const ensured = await images.ensure(job, found, (stop) => begin(contained, stop))
    if (ensured.type === 'absent') return toUnstarted(ensured.failure)
    if (contained.stopped) return toUnstarted({ class: 'cancelled', message: 'it was stopped' })
    return runIn(contained, found, ensured.image)
  }

  async function runIn(contained: Contained, found: Runtime, image: ImageFacts): Promise<JobOutcome> {
    const { job } = contained
    const name = `pilot-${job.key.slice(0, 12)}-${job.attempt}-${randomBytes(4).toString('hex')}`
    const { argv, environment } = toLaunch(job, name, found, image)
    // A mount needs something to be mounted; a local job would make what it may write itself.
    for (const path of job.writable) mkdirSync(path, { recursive: true })
    let word: string | undefined
    const handle = await local.submit({
      ...job,
      argv,
      environment,
      outside: { remove: toRemove(found, name) },
      onLine: (stream, line) => {
        if (stream === 'stderr' && isRuntimeWord(line)) word = line
        job.onLine(stream, line)
      },
    })
    begin(contained, (how) => local.cancel(handle, how))
    const outcome = await local.wait(handle)
    return {
      ...outcome,
      failure: toVerdict(job, outcome, word, oom),
      usage: isSeen(found) ? outcome.usage : { ...NO_USAGE, wallMs: outcome.usage.wallMs },
      isolation: 'container',
      imageConfig: image.config,
    }
  }

  return {
    name: 'container',
    async submit(job) {
      const handle = `container.${job.runId}.${++started}`
      const contained: Contained = { job, stopped: undefined, stop: () => {} }
      jobs.set(handle, { contained, ended: bringUp(contained).catch(toUnbroken) })
      return handle
    },
    async wait(handle) {
      const found = jobs.get(handle)
      if (!found) throw new TypeError(`no job ${handle} in this executor`)
      const outcome = await found.ended
      jobs.delete(handle)
      return outcome
    },
    cancel(handle, how) {
      const contained = jobs.get(handle)?.contained
      if (!contained) return
      contained.stopped = how
      contained.stop(how)
    },
    async reattach() {
      // A container does not outlive the pilot that started it either.
      return undefined
    },
    async [Symbol.asyncDispose]() {
      const left = [...jobs.values()]
      for (const { contained } of left) {
        contained.stopped = 'kill'
        contained.stop('kill')
      }
      await Promise.all(left.map(({ ended }) => ended))
    },
  }
}

const NO_INIT =
  'no init for containers was found (catatonit, tini-static), so a stage that handles no TERM is killed when stopped'

/** Something of the job runs from here on, and may have been stopped before it did. */
function begin(contained: Contained, stop: Contained['stop']): void {
  contained.stop = stop
  if (contained.stopped) stop(contained.stopped)
}

function toRemove({ kind, command }: Runtime, name: string): readonly string[] {
  const now = kind === 'podman' ? ['--time', '0', '--ignore'] : []
  return [...command, 'rm', '--force', '--volumes', ...now, name]
}

/** What a daemon starts as another user is not seen in the process table. */
function isSeen({ kind }: Runtime): boolean {
  return kind === 'podman' || process.getuid?.() === 0
}

function toUnstarted(failure: JobOutcome['failure']): JobOutcome {
  return { failure, usage: NO_USAGE, log: null, isolation: 'container' }
}

function toUnbroken(error: unknown): JobOutcome {
  const message =
    error instanceof PilotError && error.hint ? `${error.message} (${error.hint})` : String(error)
  return toUnstarted({ class: 'infra', message })
}
