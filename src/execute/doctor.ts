// Looks at this machine: programs by absolute path and version, GPUs, disk, clock. Starts what it finds, changes
// nothing but a probe file that it removes. Judges nothing.

import { execFile } from 'node:child_process'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import type { Disk, Gpu, MachineFacts, Program } from '../model/machine.ts'
import { platformOf } from './fingerprint.ts'

const run = promisify(execFile)
const PROBE_TIMEOUT_MS = 30_000

type Environment = Readonly<Record<string, string | undefined>>

export interface ProbeOptions {
  readonly environment: Environment
  /** Folder of the project; where the store will be. */
  readonly root: string
  /** Command lines of the tools that stages declare. */
  readonly tools: readonly (readonly string[])[]
  /** The pipeline's own checks: program and arguments, by name. */
  readonly checks: Readonly<Record<string, readonly string[]>>
  /** Files of the project whose times are surely past. */
  readonly files: readonly string[]
}

/** What is asked of each program; the first of the names that answers counts. */
const PROGRAMS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  git: [['git', '--version']],
  uv: [['uv', '--version']],
  python: [
    ['python3', '--version'],
    ['python', '--version'],
  ],
  zstd: [['zstd', '--version']],
}

const RUNTIMES: typeof PROGRAMS = {
  podman: [['podman', '--version']],
  // Asks the daemon too: a client alone runs nothing.
  docker: [['docker', 'version', '--format', 'Docker {{.Client.Version}}, server {{.Server.Version}}']],
}

/** One that is named is the only one that counts. */
function runtimesOf({ PILOT_CONTAINER_RUNTIME: named }: Environment): typeof PROGRAMS {
  return named ? { [named]: [[named, '--version']] } : RUNTIMES
}

/** Never throws for something that is missing: that is a fact. */
export async function probeMachine(options: ProbeOptions): Promise<MachineFacts> {
  const { environment } = options
  const [programs, runtimes, tools, checks, accelerator] = await Promise.all([
    each(PROGRAMS, (commands) => probeFirst(commands, environment)),
    each(runtimesOf(environment), (commands) => probeFirst(commands, environment)),
    each(Object.fromEntries(options.tools.map((command) => [command.join(' '), command])), (command) =>
      probeProgram(command, environment),
    ),
    each(options.checks, (argv) => runCheck(argv, options)),
    probeGpus(environment),
  ])
  const { os, arch, libc } = platformOf()
  return {
    ...{ programs, runtimes, tools, checks, ...accelerator },
    system: [os, arch, ...(libc === 'none' ? [] : [libc])].join(' '),
    node: { path: process.execPath, version: process.version },
    cpus: cpus().length,
    memoryMiB: Math.floor(totalmem() / 2 ** 20),
    disk: probeDisk(join(options.root, 'artifacts')),
    nowMs: Date.now(),
    pastMs: Math.max(
      0,
      ...options.files.flatMap((path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? []),
    ),
  }
}

async function each<T, R>(
  things: Readonly<Record<string, T>>,
  look: (thing: T) => Promise<R>,
): Promise<Readonly<Record<string, R>>> {
  return Object.fromEntries(
    await Promise.all(
      Object.entries(things).map(async ([name, thing]) => [name, await look(thing)] as const),
    ),
  )
}

async function probeFirst(
  commands: readonly (readonly string[])[],
  environment: Environment,
): Promise<Program> {
  let found: Program = { path: undefined, why: 'not looked for' }
  for (const command of commands) {
    found = await probeProgram(command, environment)
    if (found.path !== undefined) break
  }
  return found
}

/** Each file of that name on PATH is tried by starting it: a pyenv shim without a version is there and exits 127. */
async function probeProgram(
  [name = '', ...rest]: readonly string[],
  environment: Environment,
): Promise<Program> {
  let why = 'not on PATH'
  for (const path of candidates(name, environment['PATH'] ?? '')) {
    try {
      const { stdout, stderr } = await run(path, rest, { env: environment, timeout: PROBE_TIMEOUT_MS })
      const version = firstLine(stdout) ?? firstLine(stderr)
      if (version !== undefined) return { path, version }
      why = `${path} printed nothing`
    } catch (error) {
      why = `${path} does not work: ${firstLine(error instanceof Error ? error.message : String(error))}`
    }
  }
  return { path: undefined, why }
}

function candidates(name: string, path: string): readonly string[] {
  if (isAbsolute(name)) return [name]
  return path
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, name))
    .filter(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

function firstLine(text: string): string | undefined {
  // zstd adorns its line.
  return linesOf(text)[0]?.replace(/^[*\s]+|[*\s]+$/g, '')
}

function linesOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.trim() !== '')
}

async function runCheck(
  [program = '', ...rest]: readonly string[],
  { environment, root }: ProbeOptions,
): Promise<MachineFacts['checks'][string]> {
  try {
    const { stdout } = await run(program, rest, { cwd: root, env: environment, timeout: PROBE_TIMEOUT_MS })
    return { passed: true, lines: linesOf(stdout) }
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr) : ''
    const lines = linesOf(stderr)
    return { passed: false, lines: lines.length > 0 ? lines : linesOf(String(error)) }
  }
}

async function probeGpus(environment: Environment): Promise<Pick<MachineFacts, 'gpus' | 'cuda'>> {
  const options = { env: environment, timeout: PROBE_TIMEOUT_MS }
  const query = ['--query-gpu=name,driver_version,compute_cap,memory.total', '--format=csv,noheader,nounits']
  try {
    const [rows, banner] = await Promise.all([
      run('nvidia-smi', query, options),
      run('nvidia-smi', ['-q'], options),
    ])
    return { gpus: parseGpus(rows.stdout), cuda: /CUDA Version\s*:\s*(\S+)/.exec(banner.stdout)?.[1] ?? '' }
  } catch {
    // No nvidia-smi, or no device behind it.
    return { gpus: [], cuda: '' }
  }
}

/** From the rows of `nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total`. */
export function parseGpus(rows: string): readonly Gpu[] {
  return linesOf(rows).flatMap((row) => {
    const [model = '', driver, capability = '', memory = ''] = row.split(',').map((field) => field.trim())
    if (!driver) return []
    const computeCapability = /^\d+\.\d+$/.test(capability) ? capability : ''
    return [{ model, driver, computeCapability, memoryMiB: Number(memory) || 0 }]
  })
}

/** The folder, or the nearest above it that is there. */
function probeDisk(folder: string): Disk {
  let path = folder
  while (!existsSync(path) && path !== dirname(path)) path = dirname(path)
  const { bavail, bsize } = statfsSync(path)
  const probe = join(path, `.pilot-doctor-${process.pid}`)
  const disk = { path, freeBytes: bavail * bsize }
  try {
    const fd = openSync(probe, 'wx')
    try {
      writeSync(fd, 'probe')
      return { ...disk, unwritable: undefined, skewMs: fstatSync(fd).mtimeMs - Date.now() }
    } finally {
      closeSync(fd)
      unlinkSync(probe)
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    return { ...disk, unwritable: code, skewMs: undefined }
  }
}
