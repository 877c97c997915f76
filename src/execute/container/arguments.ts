// A job and the runtime's facts -> the arguments of `podman run` or `docker run`. Pure.

import { dirname } from 'node:path'
import type { Job } from '../../model/ports.ts'
import { MARKER } from '../process/table.ts'
import type { ImageFacts } from './image.ts'
import type { Runtime } from './runtime.ts'

/** Of an image that does not say where its programs are. */
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export interface Launch {
  readonly argv: readonly string[]
  /** Of the runtime's own program. */
  readonly environment: Readonly<Record<string, string>>
}

/** @param name of the container */
export function toLaunch(job: Job, name: string, runtime: Runtime, image: ImageFacts): Launch {
  const wanted = { PATH: image.path ?? DEFAULT_PATH, ...job.environment }
  const isPodman = runtime.kind === 'podman'
  // docker takes over what an image sets; a name without a value, absent from docker's own environment, unsets it.
  const unset = isPodman ? [] : image.variables.filter((variable) => !Object.hasOwn(wanted, variable))
  const environment = Object.fromEntries(
    Object.entries(runtime.environment).filter(([variable]) => !unset.includes(variable)),
  )
  const argv = [
    ...runtime.command,
    ...['run', '--rm', '--name', name, '--pull', 'never', '--log-driver', 'none', '--no-healthcheck'],
    ...['--hostname', 'pilot', '--workdir', job.cwd, '--network', job.network ? 'host' : 'none'],
    ...['--cap-drop', 'all', '--security-opt', 'no-new-privileges', '--security-opt', 'label=disable'],
    ...(isPodman ? ['--unsetenv-all', '--http-proxy=false'] : []),
    ...runtime.init,
    ...runtime.user,
    ...toMemory(job, runtime),
    ...toGpus(job, runtime),
    ...toMounts(job),
    ...[...unset, MARKER].flatMap((variable) => ['--env', variable]),
    ...Object.entries(wanted).flatMap(([variable, value]) => toVariable(variable, value, environment)),
    // The command is the stage's alone, whatever the image would start.
    ...['--entrypoint', '', image.ref],
    ...job.argv,
  ]
  return { argv, environment }
}

/** Arguments are for everybody to see: a value that the runtime's own program has too, as every secret, goes by name. */
function toVariable(name: string, value: string, environment: Launch['environment']): readonly string[] {
  return ['--env', environment[name] === value ? name : `${name}=${value}`]
}

function toMemory({ resources }: Job, runtime: Runtime): readonly string[] {
  if (resources.memoryMiB <= 0 || !runtime.canLimitMemory) return []
  const limit = `${Math.ceil(resources.memoryMiB)}m`
  return ['--memory', limit, '--memory-swap', limit]
}

function toGpus({ gpuIds }: Job, { kind }: Runtime): readonly string[] {
  if (gpuIds.length === 0) return []
  // docker reads the value as a row of CSV, in which the list of ids is one field.
  if (kind === 'docker') return ['--gpus', `"device=${gpuIds.join()}"`]
  return gpuIds.flatMap((id) => ['--device', `nvidia.com/gpu=${id}`])
}

/** Everything stands at the path it has outside: links within `in/` and messages that name paths hold. */
function toMounts({ cwd, readable, writable }: Job): readonly string[] {
  const mounts = new Map<string, string>()
  for (const path of readable) mounts.set(path, ',readonly')
  // HOME and TMPDIR are beside the cwd; one mount for all lets a file be renamed from one to another.
  for (const path of [...writable, dirname(cwd)]) mounts.set(path, '')
  return [...mounts].sort(byPath).flatMap(([path, suffix]) => {
    return ['--mount', `type=bind,${toField(`source=${path}`)},${toField(`target=${path}`)}${suffix}`]
  })
}

/** A folder before what is in it. */
function byPath([a]: readonly [string, string], [b]: readonly [string, string]): number {
  return a < b ? -1 : Number(a > b)
}

/** A field of the row of CSV that a mount is. */
function toField(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
