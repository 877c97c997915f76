// Policy and evidence -> checks and one verdict. Pure. Evidence that is missing establishes nothing, and is no pass;
// a failure outweighs what is not established.

import { z } from 'zod'
import type { Outcome, PlanState } from '../model/event.ts'
import { didYouMean } from '../model/near.ts'
import { count, formatMs } from './format.ts'
import { judgeMetric, type Measured, readPath } from './gate-metric.ts'
import type { Policy } from './gate-policy.ts'
import { formatTable } from './status.ts'

export type Verdict = 'pass' | 'fail' | 'not established'

/** What the store holds of a stage as it is now. */
export interface StageEvidence {
  readonly stage: string
  readonly state: PlanState
  readonly reason: string
  /** How exactly this action ended when it last came up in a run; undefined where it never did here. */
  readonly outcome: Outcome | undefined
  /** Of its failure, where that is how it ended. */
  readonly failure: string | undefined
  /** Time of its last execution. */
  readonly wallMs: number | undefined
  /** Parsed JSON outputs, by name; only those the policy names. */
  readonly outputs: Readonly<Record<string, unknown>>
}

export interface Evidence {
  /** In order of the graph. */
  readonly stages: readonly StageEvidence[]
  /** Metrics of the base by name; undefined where no base was named. */
  readonly base: Readonly<Record<string, number>> | undefined
}

export interface Check {
  readonly kind: 'stage' | 'criterion' | 'metric'
  readonly name: string
  /** Whose evidence it is. */
  readonly stage: string
  readonly verdict: Verdict
  /** What was found, in a line. */
  readonly found: string
}

export interface Judgement {
  readonly verdict: Verdict
  readonly checks: readonly Check[]
  /** Value of each metric that could be read, by name: the base of another gate. */
  readonly metrics: Readonly<Record<string, number>>
}

/** 2 is the table's code of a mistake in what was asked: nothing was there to be judged. */
export const GATE_EXITS: Readonly<Record<Verdict, number>> = { pass: 0, fail: 1, 'not established': 2 }

export function judge(policy: Policy, evidence: Evidence): Judgement {
  const measured = policy.metrics.map((metric) => [metric, measure(evidence, metric)] as const)
  const checks = [
    ...judgeStages(policy, evidence),
    ...judgeAcceptance(policy, evidence),
    ...measured.map(([metric, value]): Check => {
      const { name, stage } = metric
      if ('missing' in value)
        return { kind: 'metric', name, stage, verdict: 'not established', found: value.missing }
      return { kind: 'metric', name, stage, ...judgeMetric(metric, value, evidence.base) }
    }),
  ]
  const metrics = measured.flatMap(([{ name }, value]) =>
    'missing' in value ? [] : [[name, value.value] as const],
  )
  return { verdict: worst(checks), checks, metrics: Object.fromEntries(metrics) }
}

function worst(checks: readonly Check[]): Verdict {
  const verdicts = new Set(checks.map(({ verdict }) => verdict))
  if (verdicts.has('fail')) return 'fail'
  return verdicts.has('not established') || checks.length === 0 ? 'not established' : 'pass'
}

function judgeStages({ stages }: Policy, evidence: Evidence): readonly Check[] {
  const asked = evidence.stages.filter(({ stage }) => stages === 'all' || stages.includes(stage))
  return asked.map((row) => {
    const { stage, state, reason, outcome, failure = 'it failed' } = row
    const check = { kind: 'stage', name: stage, stage } as const
    if (state === 'hit') return { ...check, verdict: 'pass', found: formatKept(row) }
    if (outcome === 'failed') return { ...check, verdict: 'fail', found: `${failure}: pilot log ${stage}` }
    return { ...check, verdict: 'not established', found: `no result: ${reason}` }
  })
}

/** `executed in 2.3 s`, `restored, made in 2.3 s`. */
function formatKept({ outcome = 'hit', wallMs }: StageEvidence): string {
  if (wallMs === undefined) return outcome
  return `${outcome}${outcome === 'executed' ? '' : ', made'} in ${formatMs(wallMs)}`
}

const acceptanceSchema = z.looseObject({
  criteria: z.array(
    z.looseObject({
      name: z.string(),
      verdict: z.enum(['pass', 'fail', 'not established']),
      measured: z.string().default(''),
    }),
  ),
})

function judgeAcceptance({ acceptance }: Policy, evidence: Evidence): readonly Check[] {
  if (!acceptance) return []
  const { stage, output, criteria } = acceptance
  const unknown = (name: string, found: string): Check => {
    return { kind: 'criterion', name, stage, verdict: 'not established', found }
  }
  const asked = criteria === 'all' ? undefined : criteria
  const read = readOutput(evidence, stage, output)
  const told = 'missing' in read ? undefined : acceptanceSchema.safeParse(read.json)
  if (!told?.success) {
    const why = 'missing' in read ? read.missing : `"${output}" is no verdict with criteria`
    return (asked ?? ['all criteria']).map((name) => unknown(name, why))
  }
  const all = told.data.criteria
  if (!asked && all.length === 0) return [unknown('all criteria', 'the verdict has no criteria')]
  return (asked ?? all.map(({ name }) => name)).map((name) => {
    const found = all.filter((criterion) => criterion.name === name)
    const [first, second] = found
    const names = all.map((criterion) => criterion.name)
    if (!first) return unknown(name, `the verdict has no such criterion${didYouMean(name, names)}`)
    if (second) return unknown(name, 'the verdict has two criteria of that name')
    return { kind: 'criterion', name, stage, verdict: first.verdict, found: first.measured }
  })
}

function measure(
  evidence: Evidence,
  metric: Policy['metrics'][number],
): Measured | { readonly missing: string } {
  const { stage, output, field, interval } = metric
  const read = readOutput(evidence, stage, output)
  return 'missing' in read ? read : readMetric(read.json, field, interval)
}

/** A metric's value and interval in a JSON output. */
export function readMetric(
  json: unknown,
  field: string,
  interval: string | undefined,
): Measured | { readonly missing: string } {
  const value = readPath(json, field)
  if (typeof value !== 'number') return { missing: `"${field}" is not a number in its output` }
  if (interval === undefined) return { value, interval: undefined }
  const ends = z.tuple([z.number(), z.number()]).safeParse(readPath(json, interval))
  if (!ends.success || ends.data[0] > ends.data[1])
    return { missing: `"${interval}" is no [low, high] in its output` }
  return { value, interval: ends.data }
}

function readOutput(
  { stages }: Evidence,
  stage: string,
  output: string,
): { readonly json: unknown } | { readonly missing: string } {
  const row = stages.find((each) => each.stage === stage)
  if (row?.state !== 'hit')
    return { missing: `"${stage}" has no result: ${row?.reason ?? 'it is not in the pipeline'}` }
  return output in row.outputs
    ? { json: row.outputs[output] }
    : { missing: `"${output}" of "${stage}" is not JSON` }
}

/** A line a check, then the verdict with its counts. */
export function formatJudgement({ verdict, checks }: Judgement): string {
  const tally = (of: Verdict) => checks.filter((check) => check.verdict === of).length
  const rows = checks.map((check) => [check.verdict, check.kind, toLine(check.name), toLine(check.found)])
  return `${formatTable(rows)}

gate: ${verdict}: ${tally('pass')} of ${count(checks.length, 'check')} pass, ${tally('fail')} fail, ${tally('not established')} not established`
}

/** What a stage wrote may have line breaks; a report's lines are pilot's. */
export function toLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
