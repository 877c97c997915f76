// An image by its digest: here already, or pulled. What it says of itself is asked once.

import type { Job, JobOutcome } from '../../model/ports.ts'
import type { LocalExecutor } from '../local.ts'
import { ask, lastWord, type Runtime } from './runtime.ts'

export interface ImageFacts {
  /** As the runtime takes it: name and digest, without a tag. */
  readonly ref: string
  /** Digest of the image's configuration: `sha256:…`. Under one name by digest there may be one for each platform. */
  readonly config: string
  /** The PATH that the image sets, if it does. */
  readonly path: string | undefined
  /** Names of the variables that the image sets. */
  readonly variables: readonly string[]
}

export type Ensured =
  | { readonly type: 'here'; readonly image: ImageFacts }
  | { readonly type: 'absent'; readonly failure: NonNullable<JobOutcome['failure']> }

/** Told how a pull that is under way can be stopped. */
export type OnPull = (stop: (how: 'term' | 'kill') => void) => void

export interface Images {
  /** Brings the job's image here. One pull at a time for each image: who waits then finds it. */
  ensure(job: Job, runtime: Runtime, onPull: OnPull): Promise<Ensured>
}

export function openImages(local: LocalExecutor): Images {
  const known = new Map<string, ImageFacts>()
  const pending = new Map<string, Promise<unknown>>()

  async function bring(job: Job, ref: string, runtime: Runtime, onPull: OnPull): Promise<Ensured> {
    const image = known.get(ref) ?? (await inspect(ref, runtime))
    if (image) return keep(image)
    const failure = await pull(job, ref, runtime, { local, onPull })
    if (failure) return { type: 'absent', failure }
    const pulled = await inspect(ref, runtime)
    if (pulled) return keep(pulled)
    return { type: 'absent', failure: toInfra(`image ${ref} was pulled and then not found`) }
  }

  function keep(image: ImageFacts): Ensured {
    known.set(image.ref, image)
    return { type: 'here', image }
  }

  return {
    async ensure(job, runtime, onPull) {
      const ref = withoutTag(job.image ?? '')
      while (pending.has(ref)) await pending.get(ref)
      const bringing = bring(job, ref, runtime, onPull)
      pending.set(ref, bringing)
      try {
        return await bringing
      } finally {
        pending.delete(ref)
      }
    },
  }
}

/** `name:tag@sha256:…` -> `name@sha256:…`: by the digest alone, which not every runtime takes beside a tag. */
function withoutTag(image: string): string {
  return image.replace(/:[\w][\w.-]*(?=@)/, '')
}

async function inspect(ref: string, runtime: Runtime): Promise<ImageFacts | undefined> {
  const { code, stdout } = await ask(runtime, [
    'image',
    'inspect',
    '--format',
    '{{.Id}}\n{{json .Config.Env}}',
    ref,
  ])
  if (code !== 0) return undefined
  const [id = '', json = ''] = stdout.split('\n')
  const parsed: unknown = JSON.parse(json || 'null')
  const entries = Array.isArray(parsed) ? parsed.map(String) : []
  return {
    ref,
    config: id.startsWith('sha256:') ? id : `sha256:${id}`,
    path: entries.find((entry) => entry.startsWith('PATH='))?.slice('PATH='.length),
    variables: entries.map((entry) => entry.split('=', 1)[0] ?? ''),
  }
}

/** Pulls as a guarded job, so that a pull does not outlive pilot either. */
async function pull(
  job: Job,
  ref: string,
  { command, environment }: Runtime,
  { local, onPull }: { readonly local: LocalExecutor; readonly onPull: OnPull },
): Promise<JobOutcome['failure']> {
  const said: string[] = []
  const handle = await local.submit({
    ...job,
    argv: [...command, 'pull', '--quiet', ref],
    environment,
    logPath: `${job.logPath}.pull`,
    timeoutMs: undefined,
    onLine: (stream, line) => void (stream === 'stderr' && said.push(line)),
  })
  onPull((how) => local.cancel(handle, how))
  const { failure } = await local.wait(handle)
  if (!failure || failure.class === 'cancelled') return failure
  return toInfra(`image ${ref} is not here and could not be pulled: ${lastWord(said.join('\n'))}`)
}

function toInfra(message: string): NonNullable<JobOutcome['failure']> {
  return { class: 'infra', message }
}
