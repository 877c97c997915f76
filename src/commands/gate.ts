// pilot gate: holds what the store has of the pipeline as it is now against a policy. Runs nothing.

import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { isAbsolute, join, relative, resolve } from 'node:path'
import type { z } from 'zod'
import { dryRun } from '../conduct/dry-run.ts'
import type { Project } from '../conduct/project.ts'
import { lastEnds, readRecord } from '../conduct/records.ts'
import type { Flags } from '../config.ts'
import { formatIssues } from '../declare/issues.ts'
import type { Digest } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import { didYouMean } from '../model/near.ts'
import type { Place } from '../model/stage.ts'
import { findStage } from '../plan/graph.ts'
import { formatAnnotation, formatJobSummary, formatStepOutput, toPlainLog } from '../report/actions.ts'
import {
  type Evidence,
  formatJudgement,
  GATE_EXITS,
  type Judgement,
  judge,
  readMetric,
  type StageEvidence,
} from '../report/gate.ts'
import { baseSchema, type Policy, policySchema } from '../report/gate-policy.ts'
import { formatJUnit } from '../report/junit.ts'
import { toNodes } from './graph.ts'
import { openSession, print } from './session.ts'
import { writeWhole } from './write-file.ts'

export interface GateFlags extends Flags {
  readonly policy: string
  readonly base?: string | undefined
  readonly junit?: string | undefined
  readonly json?: boolean | undefined
}

export async function gateCommand(flags: GateFlags): Promise<number> {
  using session = await openSession(flags)
  const { project } = session
  const policy = readJson(flags.policy, policySchema, 'policy')
  for (const [stage, output] of namedOutputs(policy)) requireOutput(project, stage, output, flags.policy)
  if (policy.stages !== 'all') for (const stage of policy.stages) findStage(project.graph, stage)
  const evidence = await gather(project, policy, flags.base)
  const judgement = judge(policy, evidence)
  report(project, judgement, evidence, flags)
  return GATE_EXITS[judgement.verdict]
}

function report(project: Project, judgement: Judgement, evidence: Evidence, flags: GateFlags): void {
  const { environment } = project.config
  const isInActions = environment['GITHUB_ACTIONS'] === 'true'
  const text = flags.json ? JSON.stringify({ type: 'gate', ...judgement }) : formatJudgement(judgement)
  print(isInActions && !flags.json ? toPlainLog(text) : text)
  if (flags.junit !== undefined) {
    const wallMs = new Map(evidence.stages.map((row) => [row.stage, row.wallMs]))
    const xml = formatJUnit(judgement, (stage) => wallMs.get(stage))
    writeWhole(resolve(flags.junit), xml)
  }
  if (!isInActions) return
  for (const check of judgement.checks.filter(({ verdict }) => verdict !== 'pass')) {
    // On stderr, which the runner reads too: stdout is JSON for whoever asked for it.
    const line = formatAnnotation(check, placeIn(project, check.stage, environment['GITHUB_WORKSPACE']))
    process.stderr.write(`${line}\n`)
  }
  append(environment['GITHUB_STEP_SUMMARY'], formatJobSummary(judgement, evidence, toNodes(project.graph)))
  append(environment['GITHUB_OUTPUT'], formatStepOutput(judgement))
}

function append(path: string | undefined, text: string): void {
  if (path) appendFileSync(path, text)
}

/** Where a stage is declared, as the repository names it: the project may be a folder of it. */
function placeIn({ graph, root }: Project, stage: string, workspace: string | undefined): Place | undefined {
  const place = graph.stages[graph.indexOf.get(stage) ?? -1]?.where()
  if (!place || !workspace) return place
  const file = relative(workspace, resolve(root, place.file))
  return file.startsWith('..') || isAbsolute(file) ? place : { ...place, file }
}

function readJson<S extends z.ZodType>(path: string, schema: S, what: string): z.output<S> {
  let json: unknown
  try {
    json = JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw new PilotError({
      code: `invalid-${what}`,
      blame: 'user',
      what: `the ${what} cannot be read`,
      where: path,
      cause,
    })
  }
  const parsed = schema.safeParse(json)
  if (parsed.success) return parsed.data
  throw new PilotError({
    code: `invalid-${what}`,
    blame: 'user',
    what: `the ${what} is not one:\n${formatIssues(parsed.error.issues)}`,
    where: path,
  })
}

function namedOutputs({
  acceptance,
  metrics,
}: Policy): readonly (readonly [stage: string, output: string])[] {
  return [...(acceptance ? [acceptance] : []), ...metrics].map(({ stage, output }) => [stage, output])
}

function requireOutput({ graph }: Project, stage: string, output: string, where: string): void {
  const outputs = graph.stages[findStage(graph, stage)]?.outputs ?? {}
  if (Object.hasOwn(outputs, output)) return
  throw new PilotError({
    code: 'unknown-output',
    blame: 'user',
    what: `stage "${stage}" has no output "${output}"${didYouMean(output, Object.keys(outputs))}`,
    where,
    hint: `its outputs: ${Object.keys(outputs).join(', ')}`,
  })
}

async function gather(project: Project, policy: Policy, base: string | undefined): Promise<Evidence> {
  const { store } = project
  const { rows } = await dryRun(project, { to: [], from: [], only: [], force: [] })
  const named = namedOutputs(policy)
  const keys = new Map(rows.flatMap((row) => (row.actionDigest ? [[row.stage, row.actionDigest]] : [])))
  const ends = lastEnds(project, keys)
  const stages = rows.map(({ stage, state, reason, actionDigest }): StageEvidence => {
    const wanted = named.flatMap(([of, output]) => (of === stage ? [output] : []))
    const last = store.lastOf(stage)
    const end = ends.get(stage)
    return {
      ...{ stage, state, reason },
      outcome: end?.outcome,
      failure: end?.failure?.message,
      wallMs: end?.usage?.wallMs ?? (last?.key === actionDigest ? last?.wallMs : undefined),
      outputs: state === 'hit' && actionDigest ? readOutputs(project, actionDigest, wanted) : {},
    }
  })
  return { stages, base: base === undefined ? undefined : readBase(project, policy, base) }
}

/** Those of the outputs that are JSON. */
function readOutputs(
  { store }: Project,
  key: Digest,
  names: readonly string[],
): Readonly<Record<string, unknown>> {
  const result = names.length > 0 ? store.lookup(key) : undefined
  const folder = result && store.openTree(result.tree)
  if (!result || !folder) return {}
  const read = names.flatMap((name): [string, unknown][] => {
    const output = result.outputs[name]
    if (!output) return []
    try {
      return [[name, JSON.parse(readFileSync(join(folder, output.path), 'utf8'))]]
    } catch {
      // Not JSON, or a folder: the judge says so.
      return []
    }
  })
  return Object.fromEntries(read)
}

/** Metrics to compare with: of a file that `pilot gate --json` wrote, or of what the stages came to in a run here. */
function readBase(project: Project, policy: Policy, base: string): Readonly<Record<string, number>> {
  if (existsSync(base)) return readJson(base, baseSchema, 'base').metrics
  const ends = readRecord(project, base)
  if (!ends) {
    throw new PilotError({
      code: 'unknown-base',
      blame: 'user',
      what: `"${base}" is neither a file nor a run kept here`,
      hint: 'write one where the base is: pilot gate --policy FILE --json > base.json',
    })
  }
  const metrics = policy.metrics.flatMap(({ name, stage, output, field }) => {
    const key = ends.get(stage)?.actionDigest
    const read = key && readMetric(readOutputs(project, key, [output])[output], field, undefined)
    return read && 'value' in read ? [[name, read.value] as const] : []
  })
  return Object.fromEntries(metrics)
}
