// What this machine is: platform (in the key), host fingerprint (recorded), versions of named tools and accelerator
// facts (in the key where a stage names them). Cheap: asked in every run, so nothing is started but what is named.

import { execFile } from 'node:child_process'
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { arch, cpus, release, totalmem } from 'node:os'
import { promisify } from 'node:util'
import type { Platform } from '../model/action.ts'
import { PilotError } from '../model/error.ts'
import type { HostFingerprint } from '../model/result.ts'
import type { AcceleratorFact } from '../model/stage.ts'

const run = promisify(execFile)
const PROBE_TIMEOUT_MS = 30_000

let platform: Platform | undefined
let host: HostFingerprint | undefined
const versions = new Map<string, Promise<string>>()
let accelerator: Promise<Readonly<Record<AcceleratorFact, string>> | null> | undefined

/** Operating system, architecture and C library of this process. */
export function platformOf(): Platform {
  platform ??= { os: process.platform, arch: process.arch, libc: libcOf() }
  return platform
}

/** The machine as results record it. */
export function hostFingerprint(): HostFingerprint {
  if (host) return host
  const processors = cpus()
  host = {
    os: process.platform,
    kernel: release(),
    arch: arch(),
    libc: platformOf().libc,
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cpus: processors.length,
    memoryBytes: totalmem(),
    driver: driverVersion(),
  }
  return host
}

/** The C library this Node.js is linked to, by the loader its ELF header names (Linux only; `none` elsewhere). */
function libcOf(): string {
  if (process.platform !== 'linux') return 'none'
  const head = Buffer.alloc(4096)
  const fd = openSync(process.execPath, 'r')
  readSync(fd, head, 0, head.length, 0)
  closeSync(fd)
  const text = head.toString('latin1')
  return text.includes('/ld-musl-') ? 'musl' : 'glibc'
}

/** Version of the NVIDIA kernel driver, from /proc (Linux only). */
function driverVersion(): string | null {
  try {
    const text = readFileSync('/proc/driver/nvidia/version', 'utf8')
    return /Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)/.exec(text)?.[1] ?? null
  } catch {
    return null
  }
}

/** First line a tool prints about itself; each command is run once a process.
 *  @param environment what the tool is started with; its PATH is where the tool is looked for
 *  @throws PilotError `tool-missing` or `tool-failed` */
export function toolVersion(
  command: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const key = JSON.stringify(command)
  const known = versions.get(key)
  if (known) return known
  const version = askVersion(command, environment)
  versions.set(key, version)
  return version
}

async function askVersion(
  command: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const [program = '', ...rest] = command
  try {
    const { stdout, stderr } = await run(program, rest, { env: environment, timeout: PROBE_TIMEOUT_MS })
    const line = firstLine(stdout) ?? firstLine(stderr)
    if (line !== undefined) return line
    throw new Error('it printed nothing')
  } catch (error) {
    throw toToolError(command.join(' '), program, error)
  }
}

function firstLine(text: string): string | undefined {
  return text
    .split('\n')
    .map((line) => line.trim())
    .find((line) => line !== '')
}

function toToolError(command: string, program: string, error: unknown): PilotError {
  if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'EACCES')) {
    return new PilotError({
      code: 'tool-missing',
      blame: 'environment',
      what: `the tool "${program}" was not found on PATH, and its version is part of what a stage depends on`,
      hint: `install ${program}, or add its folder to PATH; pilot asks it with: ${command}`,
      cause: error,
    })
  }
  return new PilotError({
    code: 'tool-failed',
    blame: 'environment',
    what: `the tool "${program}" did not tell its version`,
    hint: `try it by hand: ${command}`,
    cause: error,
  })
}

/** Model, driver and CUDA version of the accelerators, or null where there are none; asked once a process.
 *  Several models are joined by ` + `, each once. */
export function acceleratorFacts(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Readonly<Record<AcceleratorFact, string>> | null> {
  accelerator ??= askAccelerator(environment)
  return accelerator
}

async function askAccelerator(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Readonly<Record<AcceleratorFact, string>> | null> {
  const options = { env: environment, timeout: PROBE_TIMEOUT_MS }
  try {
    const query = ['--query-gpu=name,driver_version', '--format=csv,noheader']
    const [rows, banner] = await Promise.all([
      run('nvidia-smi', query, options),
      run('nvidia-smi', ['-q'], options),
    ])
    return parseAccelerator(rows.stdout, banner.stdout)
  } catch {
    // No nvidia-smi, or no device behind it: a machine without accelerators.
    return null
  }
}

/** From the rows of `--query-gpu=name,driver_version` and the text of `nvidia-smi -q`, which names CUDA. */
export function parseAccelerator(
  rows: string,
  banner: string,
): Readonly<Record<AcceleratorFact, string>> | null {
  const cards = rows
    .trim()
    .split('\n')
    .map((row) => row.split(',').map((field) => field.trim()))
    .filter((fields) => fields.length === 2)
  const driver = cards[0]?.[1]
  if (driver === undefined) return null
  const models = [...new Set(cards.map((fields) => fields[0] ?? ''))].sort()
  const cuda = /CUDA Version\s*:\s*(\S+)/.exec(banner)?.[1] ?? ''
  return { model: models.join(' + '), driver, cuda }
}
