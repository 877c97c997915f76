// What a stage's process gets: its whole environment, and its argv with the placeholders filled in. Pure.
// Not given: the stage's name, attempt and host. They are not in the key, so no result may come to depend on them.

import { type EnvironmentSpec, FOLDER_INPUT } from '../model/stage.ts'

export interface EnvironmentFacts {
  readonly spec: EnvironmentSpec
  /** The environment pilot itself was started with. */
  readonly host: Readonly<Record<string, string | undefined>>
  /** Absolute paths of the attempt's own folders. */
  readonly home: string
  readonly tmp: string
  /** Absolute path of what is kept per machine beside the store, as `PILOT_MACHINE_DIR`. */
  readonly machineDir?: string | undefined
  /** GPUs given to the job; empty where it asked for none. */
  readonly gpuIds: readonly string[]
  /** In an image: PATH is the image's, and the job sees its own GPUs only, counted from 0. */
  readonly isInImage?: boolean
}

/** Variables every stage gets; a stage may set them otherwise. PATH is the host's and not in the key: which tools
 *  count is said by `tools` and `lockfile`. */
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'

/** The whole environment of a stage's process. Names the stage declares win over the base, constants over all. */
export function toEnvironment(facts: EnvironmentFacts): Readonly<Record<string, string>> {
  const { spec, host } = facts
  const environment: Record<string, string> = {
    ...(!facts.isInImage && { PATH: host['PATH'] ?? DEFAULT_PATH }),
    HOME: facts.home,
    TMPDIR: facts.tmp,
    LANG: 'C.UTF-8',
    TZ: 'UTC',
  }
  for (const name of [...spec.pass, ...spec.secrets, ...spec.keep]) {
    const value = host[name]
    if (value !== undefined) environment[name] = value
  }
  Object.assign(environment, spec.set)
  if (facts.machineDir !== undefined) environment['PILOT_MACHINE_DIR'] = facts.machineDir
  const gpus = visibleGpus(facts)
  if (gpus !== undefined) environment['CUDA_VISIBLE_DEVICES'] = gpus
  return environment
}

/** The ids were chosen among the inherited ones; without a request the inherited limit still holds. */
function visibleGpus({ gpuIds, host, isInImage }: EnvironmentFacts): string | undefined {
  if (gpuIds.length === 0) return isInImage ? undefined : host['CUDA_VISIBLE_DEVICES']
  return (isInImage ? [...gpuIds.keys()] : gpuIds).join()
}

/** The values that must be redacted wherever text of the stage is kept. */
export function secretValues(spec: EnvironmentSpec, host: EnvironmentFacts['host']): readonly string[] {
  return spec.secrets.flatMap((name) => host[name] || [])
}

export interface ArgvFacts {
  /** Input name -> the name under `in/`. */
  readonly inputs: Readonly<Record<string, string>>
  /** Output name -> its path under `out/`. */
  readonly outputs: Readonly<Record<string, string>>
  /** Absolute path of the Node.js that runs pilot. */
  readonly node: string
}

const PLACEHOLDER = /\{(?:(in|out):([^{}]+)|(src|node))\}/g

/** argv with `{in:x}`, `{out:x}`, `{src}` and `{node}` replaced, wherever they stand in an argument, by paths relative
 *  to the working directory. What is no placeholder of a known name stays as it is. */
export function expandArgv(argv: readonly string[], facts: ArgvFacts): readonly string[] {
  return argv.map((argument) => (argument.includes('{') ? expand(argument, facts) : argument))
}

function expand(argument: string, facts: ArgvFacts): string {
  return argument.replace(PLACEHOLDER, (whole, side?: string, name?: string, word?: string) => {
    if (word === 'node') return facts.node
    const known = side === 'out' ? facts.outputs : facts.inputs
    const key = word === 'src' ? FOLDER_INPUT : name
    if (key === undefined || !Object.hasOwn(known, key)) return whole
    return `${side ?? 'in'}/${known[key]}`
  })
}
