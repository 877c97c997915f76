// pilot reproduce STAGE: executes it once more without its kept result, and compares what came out. The kept result stays.

import type { FileComparison } from '../compare/difference.ts'
import { compareTrees, type Side } from '../compare/trees.ts'
import { dryRun } from '../conduct/dry-run.ts'
import type { Project } from '../conduct/project.ts'
import { type Flags, readTerminal } from '../config.ts'
import { openMachineExecutor } from '../execute/machine.ts'
import type { Digest } from '../model/digest.ts'
import { EXIT_CODES, PilotError } from '../model/error.ts'
import { didYouMean } from '../model/near.ts'
import type { ActionResult } from '../model/result.ts'
import { findStage } from '../plan/graph.ts'
import { plainReporter } from '../report/plain.ts'
import { formatTable } from '../report/status.ts'
import { run } from '../run.ts'
import { openInterrupts } from './interrupts.ts'
import { openSession, print } from './session.ts'

export interface ReproduceFlags extends Flags {
  /** Outputs to compare; all by default. */
  readonly output?: readonly string[] | undefined
  readonly tolerance: number
  readonly ignore?: readonly string[] | undefined
  readonly json?: boolean | undefined
}

export async function reproduceCommand(name: string, flags: ReproduceFlags): Promise<number> {
  if (!(flags.tolerance >= 0)) throw mistake('--tolerance is no number from 0 on', 'for example 1e-6')
  using session = await openSession({ ...flags, only: [name], force: [name] })
  const { project, runId, now } = session
  const { store } = project
  const kept = await keptResult(project, name)
  const paths = toPaths(kept, flags.output)
  await using executor = openMachineExecutor({
    environment: project.config.environment,
    onWarning: (code, message) => process.stderr.write(`warning[${code}]: ${message}\n`),
    tempRoot: () => store.makeTemp('pipes'),
  })
  using interrupts = openInterrupts()
  const { hasColor } = readTerminal()
  const reporter = plainReporter({ write: (text) => void process.stderr.write(text), hasColor })
  try {
    const { stop, kill } = interrupts
    const end = await run({ project, executor, reporter, runId, now, stop, kill })
    await reporter.close()
    if (end.exit !== EXIT_CODES.ok) return end.exit
    const made = store.readResult(kept.actionDigest)
    const files = compareTrees(sideOf(project, kept.tree), sideOf(project, made?.tree ?? kept.tree), paths, {
      tolerance: flags.tolerance,
      ignore: new Set(flags.ignore ?? []),
    })
    return report(name, files, flags.json ?? false)
  } finally {
    await store.putResult(kept, { replace: true })
    store.setLatest(name, kept.tree)
  }
}

async function keptResult(project: Project, name: string): Promise<ActionResult> {
  const index = findStage(project.graph, name)
  const { resolved } = await dryRun(project)
  const key = resolved[index]?.key
  const kept = key && project.store.lookup(key) && project.store.readResult(key)
  if (kept) return kept
  throw mistake(
    `nothing is kept of stage "${name}" as it is now, so there is nothing to compare with`,
    `bring it about: pilot run --to ${name}`,
  )
}

function toPaths({ outputs }: ActionResult, names: readonly string[] | undefined): readonly string[] {
  const chosen = names ?? Object.keys(outputs)
  return chosen.map((output) => {
    const record = Object.hasOwn(outputs, output) ? outputs[output] : undefined
    if (record) return record.path
    throw mistake(
      `it has no output "${output}"${didYouMean(output, Object.keys(outputs))}`,
      `its outputs: ${Object.keys(outputs).join(', ')}`,
    )
  })
}

function sideOf({ store }: Project, digest: Digest): Side {
  const root = store.openTree(digest)
  const tree = store.readTree(digest)
  if (!root || !tree)
    throw new PilotError({
      code: 'no-outputs',
      blame: 'environment',
      what: `tree ${digest.slice(0, 12)} is gone or damaged`,
    })
  return { root, tree }
}

function report(stage: string, files: readonly FileComparison[], isJson: boolean): number {
  const different = files.filter(({ verdict }) => verdict === 'different')
  const [first] = different
  if (isJson) print(JSON.stringify({ type: 'reproduce', stage, reproduced: !first, files }))
  else {
    const told = files.filter(({ verdict }) => verdict !== 'same')
    if (told.length > 0)
      print(formatTable(told.map(({ path, verdict, difference }) => [verdict, path, difference ?? ''])))
    const same = files.filter(({ verdict }) => verdict === 'same').length
    print(
      first
        ? `${stage}: not reproduced: ${different.length} of ${files.length} files differ, the first is ${first.path}: ${first.difference}`
        : `${stage}: reproduced: ${same} of ${files.length} files byte for byte, ${files.length - same} within what was allowed`,
    )
  }
  return first ? EXIT_CODES.stage : EXIT_CODES.ok
}

function mistake(what: string, hint: string): PilotError {
  return new PilotError({ code: 'reproduce', blame: 'user', what, hint })
}
