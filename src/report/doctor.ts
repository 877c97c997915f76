// What a machine has and lacks: facts and needs -> findings -> text. Pure. A lack is a failure only where a stage of
// the recipe needs the thing; what nobody asks for is said and is no fault.

import { EXIT_CODES } from '../model/error.ts'
import type { Disk, MachineFacts, Needs, Program } from '../model/machine.ts'
import { formatBytes } from './format.ts'
import { formatTable } from './status.ts'

export interface Finding {
  readonly state: 'ok' | 'warn' | 'fail'
  /** What was looked at: `gpu`. */
  readonly what: string
  /** What was found. */
  readonly found: string
  /** What to do; of a finding that is not `ok`. */
  readonly mend?: string
}

/** Findings in the order people look for them. The same facts give the same findings. */
export function diagnose(facts: MachineFacts, needs: Needs): readonly Finding[] {
  const { checks, programs, node } = facts
  const own = new Set(Object.keys(checks))
  return [
    ok('system', facts.system),
    ok('node', `${node.version} ${node.path}`),
    diagnoseGit(programs['git']),
    // A check of the pipeline's own by the same name knows better which interpreter its stages take.
    ...['uv', 'python'].flatMap((name) => (own.has(name) ? [] : [diagnoseOptional(name, programs[name])])),
    ...Object.entries(checks).map(([name, check]) => diagnoseCheck(name, check)),
    ...Object.entries(needs.tools).map(([command, stages]) =>
      diagnoseTool(command, stages, facts.tools[command]),
    ),
    ...diagnoseGpus(facts, needs.gpu),
    diagnoseRuntime(facts.runtimes, needs.image),
    diagnoseOptional('zstd', programs['zstd']),
    diagnoseMemory(facts, needs),
    diagnoseDisk(facts.disk),
    diagnoseClock(facts),
  ]
}

/** Exit code of the command: 0, or that of a machine at fault. */
export function exitOfFindings(findings: readonly Finding[]): number {
  return findings.some(({ state }) => state === 'fail') ? EXIT_CODES.environment : EXIT_CODES.ok
}

/** A line a finding, its mend below it, and the count. */
export function formatFindings(findings: readonly Finding[]): string {
  const rows = formatTable(findings.map(({ state, what, found }) => [state.padEnd(4), what, found])).split(
    '\n',
  )
  const indent = ' '.repeat(6)
  const lines = findings.flatMap(({ mend }, i) => [
    rows[i] ?? '',
    ...(mend === undefined ? [] : mend.split('\n').map((line) => `${indent}${line}`)),
  ])
  const tally = (state: Finding['state']) => findings.filter((finding) => finding.state === state).length
  return [...lines, '', `doctor: ${tally('ok')} ok, ${tally('warn')} warn, ${tally('fail')} fail`].join('\n')
}

function ok(what: string, found: string): Finding {
  return { state: 'ok', what, found }
}

function tell(program: Program & { readonly path: string }): string {
  return `${program.version}  ${program.path}`
}

function isThere(program: Program | undefined): program is Program & { readonly path: string } {
  return program?.path !== undefined
}

function diagnoseGit(git: Program | undefined): Finding {
  if (isThere(git)) return ok('git', tell(git))
  const mend = 'install git: a source pinned by commit is fetched with it'
  return { state: 'warn', what: 'git', found: git?.why ?? 'not looked for', mend }
}

function diagnoseOptional(what: string, program: Program | undefined): Finding {
  return ok(what, isThere(program) ? tell(program) : 'none, and nothing asks for it')
}

function diagnoseCheck(what: string, { passed, lines }: MachineFacts['checks'][string]): Finding {
  const [found = passed ? 'as it should be' : 'it failed and said nothing', ...rest] = lines
  if (passed) return ok(what, found)
  const mend = rest.length > 0 ? rest.join('\n') : 'it is a check of the pipeline: see `checks` in its file'
  return { state: 'fail', what, found, mend }
}

function diagnoseTool(command: string, stages: readonly string[], program: Program | undefined): Finding {
  const what = command.split(' ')[0] ?? command
  if (isThere(program)) return ok(what, tell(program))
  const mend = `install it, or put it on PATH: it is asked with \`${command}\` for ${named(stages)}`
  return { state: 'fail', what, found: program?.why ?? 'not looked for', mend }
}

function diagnoseGpus({ gpus, cuda }: MachineFacts, stages: readonly string[]): readonly Finding[] {
  const [first] = gpus
  if (!first) {
    if (stages.length === 0) return [ok('gpu', 'none, and no stage asks for one')]
    const mend =
      'install the NVIDIA driver, so that nvidia-smi lists a GPU here; or run these stages on a machine that has one'
    return [{ state: 'fail', what: 'gpu', found: `none, and ${named(stages)} ${asks(stages)} for one`, mend }]
  }
  return [
    ok('gpu', gpus.map((gpu) => `${gpu.model} ${formatBytes(gpu.memoryMiB * 2 ** 20)}`).join(', ')),
    ok('driver', first.driver),
    cuda === ''
      ? { state: 'warn', what: 'cuda', found: 'the driver names none', mend: 'bring the driver up to date' }
      : ok('cuda', `${cuda} at most, by the driver`),
    ok('capability', [...new Set(gpus.map((gpu) => gpu.computeCapability || 'not told'))].join(', ')),
  ]
}

function diagnoseRuntime(runtimes: MachineFacts['runtimes'], stages: readonly string[]): Finding {
  const what = 'containers'
  const [first] = Object.values(runtimes).filter(isThere)
  if (first) return ok(what, tell(first))
  if (stages.length === 0)
    return ok(what, `no ${Object.keys(runtimes).join(' or ')} works, and no stage has an image`)
  const why = Object.entries(runtimes).map(
    ([name, program]) => `${name}: ${isThere(program) ? '' : program.why}`,
  )
  const found = `${named(stages)} ${stages.length === 1 ? 'has' : 'have'} an image; ${why.join('; ')}`
  return { state: 'fail', what, found, mend: 'install podman (no daemon, no root) or docker' }
}

function diagnoseMemory({ memoryMiB, cpus }: MachineFacts, { memory }: Needs): Finding {
  const found = `${formatBytes(memoryMiB * 2 ** 20)}, ${cpus} CPUs`
  if (!memory || memory.mostMiB <= memoryMiB) return ok('memory', found)
  const mend = `"${memory.stage}" declares ${formatBytes(memory.mostMiB * 2 ** 20)}: it will run alone, and may be killed`
  return { state: 'warn', what: 'memory', found, mend }
}

/** With less than this a run of a few checkpoints may not end; with less than the second hardly any will. */
const LITTLE_BYTES = 5e9
const TOO_LITTLE_BYTES = 2e8

function diagnoseDisk({ path, freeBytes, unwritable }: Disk): Finding {
  const what = 'disk'
  if (unwritable !== undefined) {
    const mend = 'the store is beside the pipeline: make that folder writable for this user'
    return { state: 'fail', what, found: `${path} cannot be written: ${unwritable}`, mend }
  }
  const found = `${formatBytes(freeBytes)} free at ${path}`
  if (freeBytes >= LITTLE_BYTES) return ok(what, found)
  const state = freeBytes < TOO_LITTLE_BYTES ? 'fail' : 'warn'
  return { state, what, found, mend: 'make room: pilot gc --dry-run says what could go' }
}

/** File systems keep times in grains of up to two seconds. */
const SKEW_MS = 2_500

function diagnoseClock({ nowMs, pastMs, disk }: MachineFacts): Finding {
  const what = 'clock'
  const behindMs = pastMs - nowMs
  if (behindMs > SKEW_MS) {
    const found = `${new Date(nowMs).toISOString()} is before the last change of a file here, ${new Date(pastMs).toISOString()}`
    return { state: 'warn', what, found, mend: 'set the clock: records and certificates go by it' }
  }
  const skewMs = disk.skewMs ?? 0
  if (Math.abs(skewMs) > SKEW_MS) {
    const found = `the disk's clock is ${(skewMs / 1000).toFixed(1)} s off this machine's`
    return { state: 'warn', what, found, mend: 'keep both in step (NTP): a changed file is told by its time' }
  }
  return ok(what, new Date(nowMs).toISOString())
}

function asks(stages: readonly string[]): string {
  return stages.length === 1 ? 'asks' : 'ask'
}

const MOST_NAMED = 3

function named(stages: readonly string[]): string {
  const names = stages.slice(0, MOST_NAMED).map((stage) => `"${stage}"`)
  const more = stages.length - names.length
  return `${stages.length === 1 ? 'stage' : 'stages'} ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
