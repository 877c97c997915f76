// `trajectory translate`: a source's files -> rows of the contract and diagnostics, each file replaced whole or not at all.

import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { CommandIo } from '../command-io.ts'
import { writeTrajectories } from '../write.ts'
import { translateAgentLightning } from './agent-lightning.ts'
import type { LauncherInput } from './launcher.ts'
import { translateNemoGym } from './nemo-gym.ts'
import type { Translation } from './to-rows.ts'
import { formatTranslateFault, TranslateError } from './translate-error.ts'
import { translateTrl } from './trl.ts'
import { translateVerifiers01 } from './verifiers-0-1.ts'
import { translateVerifiers04 } from './verifiers-0-4.ts'
import { translateVerl } from './verl.ts'

/** What each source's files hold, and its translator. */
const SOURCES: Readonly<
  Record<string, (files: readonly string[], launcher: LauncherInput, run: string) => Translation>
> = {
  // Two files, as a launcher keeps them: rollout details, and the events of all.
  'agent-lightning': ([rollouts = '', events = ''], launcher) =>
    translateAgentLightning(joinEvents(readLines(rollouts), readLines(events)), launcher),
  verl: ([dumps = ''], launcher) => translateVerl(readLines(dumps), launcher),
  trl: ([batch = ''], launcher) => translateTrl(readJson(batch), launcher),
  'nemo-gym': ([rows = ''], launcher, run) => translateNemoGym(readLines(rows), launcher, run),
  'verifiers-0.1': ([metadata = '', results = ''], launcher) =>
    translateVerifiers01({ metadata: readJson(metadata), results: readLines(results) }, launcher),
  'verifiers-0.4': ([traces = ''], launcher) => translateVerifiers04(readLines(traces), launcher),
}

const USAGE = `translate --from SOURCE --launcher FILE --out FILE [--diagnostics FILE] [--run ID] FILE…
sources: ${Object.keys(SOURCES).join(', ')}`

/** @param argv words after `translate`. @returns exit code: 0 translated, 1 rejected, 2 wrong usage */
export async function translateCommand(argv: readonly string[], io: CommandIo): Promise<number> {
  const request = parse(argv)
  const translate = request && SOURCES[request.from]
  if (!request || !translate) {
    io.stderr(`error[usage]: ${USAGE}\n`)
    return 2
  }
  try {
    // Checked by the translator, field by field.
    const launcher = readJson(request.launcher) as LauncherInput
    const { rows, diagnostics } = translate(request.files, launcher, request.run)
    await writeTrajectories(request.out, rows)
    if (request.diagnostics !== undefined) writeLines(request.diagnostics, diagnostics)
    io.stdout(`${request.out}: ${rows.length} rows, ${diagnostics.length} diagnostics\n`)
    return 0
  } catch (error) {
    if (!(error instanceof TranslateError)) throw error
    for (const fault of error.faults) io.stderr(`error${formatTranslateFault(fault)}\n`)
    return 1
  }
}

interface Request {
  readonly from: string
  readonly launcher: string
  readonly out: string
  readonly diagnostics: string | undefined
  readonly run: string
  readonly files: readonly string[]
}

function parse(argv: readonly string[]): Request | undefined {
  const text = { type: 'string' } as const
  try {
    const options = { from: text, launcher: text, out: text, diagnostics: text, run: text }
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true })
    const { from, launcher, out, diagnostics, run = 'run' } = values
    if (from === undefined || launcher === undefined || out === undefined || positionals.length === 0)
      return undefined
    return { from, launcher, out, diagnostics, run, files: positionals }
  } catch {
    return undefined
  }
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8'))
}

function readLines(path: string): readonly unknown[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line): unknown => JSON.parse(line))
}

/** Each rollout with its events, in the order they came. An event of a rollout that is not there stays visible: the
 *  translator finds a rollout with too few. */
function joinEvents(rollouts: readonly unknown[], events: readonly unknown[]): readonly unknown[] {
  const byRollout = Map.groupBy(events, (event) => fieldOf(event, 'rollout_id'))
  return rollouts.map((detail) => {
    const rollout = fieldOf(detail, 'rollout') ?? detail
    return { rollout, events: byRollout.get(fieldOf(rollout, 'rollout_id')) ?? [] }
  })
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && name in value ? Reflect.get(value, name) : undefined
}

function writeLines(path: string, rows: readonly unknown[]): void {
  const temp = `${path}.${process.pid}.partial`
  writeFileSync(temp, rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  renameSync(temp, path)
}
