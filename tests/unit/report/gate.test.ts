// The gate's judgement: missing evidence establishes nothing, a failure outweighs it, every bound must hold.

import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { formatAnnotation, formatJobSummary, toPlainLog } from '../../../src/report/actions.ts'
import {
  type Check,
  type Evidence,
  formatJudgement,
  judge,
  type StageEvidence,
} from '../../../src/report/gate.ts'
import { policySchema } from '../../../src/report/gate-policy.ts'
import { formatJUnit } from '../../../src/report/junit.ts'

function stage(name: string, fields: Partial<StageEvidence> = {}): StageEvidence {
  const kept = { state: 'hit', reason: 'kept here', outcome: 'executed', failure: undefined } as const
  return { stage: name, ...kept, wallMs: 2_300, outputs: {}, ...fields }
}

const WAITING = { state: 'wait', reason: 'waits on x', outcome: undefined } as const
const FAILED = {
  state: 'run',
  reason: 'never ran here',
  outcome: 'failed',
  failure: 'it exited with 3',
} as const

/** Of `metric` fields against an evaluation of 0.5 [0.4, 0.7]. */
function judgeMetric(metric: object, base?: Readonly<Record<string, number>>): Check | undefined {
  const place = {
    name: 'reward',
    stage: 'evaluate',
    output: 'verdict',
    field: 'after.mean',
    interval: 'ends',
  }
  const evaluation = { after: { mean: 0.5 }, ends: [0.4, 0.7] }
  const evidence = { stages: [stage('evaluate', { outputs: { verdict: evaluation } })], base }
  return judge(policySchema.parse({ metrics: [{ ...place, ...metric }] }), evidence).checks[0]
}

const BASE = { reward: 0.6 }

test.each([
  [{}, undefined, 'pass', /^0\.5 \[0\.4, 0\.7\]$/],
  [{ min: 0.5, max: 0.5 }, undefined, 'pass', /value is at least 0\.5 and at most 0\.5$/],
  [{ min: 0.51 }, undefined, 'fail', /value is not at least 0\.51$/],
  [{ max: 0.49 }, undefined, 'fail', /value is not at most 0\.49$/],
  [
    { min: 0.45, judge: 'interval' },
    undefined,
    'not established',
    /value \[0\.4, 0\.7\] is not surely at least 0\.45$/,
  ],
  [{ min: 0.4, judge: 'interval' }, undefined, 'pass', /is at least 0\.4$/],
  [{ min: 0.71, judge: 'interval' }, undefined, 'fail', /is not at least 0\.71$/],
  [{ change: { min: -0.2 } }, BASE, 'pass', /base 0\.6; change -0\.1 is at least -0\.2$/],
  [{ change: { min: -0.05 } }, BASE, 'fail', /change -0\.1 is not at least -0\.05$/],
  [
    { change: { min: -0.15 }, judge: 'interval' },
    BASE,
    'not established',
    /change \[-0\.2, 0\.1\] is not surely/,
  ],
  [{ ratio: { min: 0.8 } }, BASE, 'pass', /ratio 0\.833333 is at least 0\.8$/],
  [{ ratio: { min: 0.9 } }, BASE, 'fail', /is not at least 0\.9$/],
  [{ ratio: { min: 0.8 } }, { reward: 0 }, 'not established', /the base is not above 0$/],
  [{ change: { min: -1 } }, undefined, 'not established', /no base was named$/],
  [{ change: { min: -1 } }, { other: 1 }, 'not established', /the base has no such metric$/],
  [
    { min: 0.9, change: { min: -1 } },
    undefined,
    'fail',
    /value is not at least 0\.9; change .*no base was named$/,
  ],
  [{ field: 'after.median' }, undefined, 'not established', /"after\.median" is not a number/],
  [{ field: 'after' }, undefined, 'not established', /"after" is not a number/],
  [{ interval: 'after.mean' }, undefined, 'not established', /"after\.mean" is no \[low, high\]/],
])('metric %j against base %j: %s', (metric, base, verdict, found) => {
  const check = judgeMetric(metric, base)

  expect(check).toMatchObject({ verdict, found: expect.stringMatching(found) })
})

test('a metric of a stage without a result is not established, and says why', () => {
  const policy = policySchema.parse({ metrics: [{ name: 'm', stage: 'a', output: 'o', field: 'f' }] })

  const [waiting] = judge(policy, { stages: [stage('a', WAITING)], base: undefined }).checks
  const [plain] = judge(policy, { stages: [stage('a')], base: undefined }).checks

  expect(waiting).toMatchObject({ verdict: 'not established', found: '"a" has no result: waits on x' })
  expect(plain).toMatchObject({ verdict: 'not established', found: '"o" of "a" is not JSON' })
})

test.each([
  ['pass', [stage('a'), stage('b')]],
  ['not established', [stage('a'), stage('b', WAITING)]],
  ['fail', [stage('a', FAILED), stage('b', WAITING)]],
])('stages, all: %s', (verdict, stages) => {
  expect(judge(policySchema.parse({ stages: 'all' }), { stages, base: undefined }).verdict).toBe(verdict)
})

test('a stage that is not asked for decides nothing', () => {
  const evidence = { stages: [stage('a'), stage('b', FAILED)], base: undefined }

  expect(judge(policySchema.parse({ stages: ['a'] }), evidence).verdict).toBe('pass')
})

const CRITERIA = [
  { name: 'exact tokens', verdict: 'pass', measured: '96 tokens' },
  { name: 'held-out result', verdict: 'not established', measured: 'of fixtures' },
  { name: 'repeatable', verdict: 'fail', measured: 'differ' },
]

function judgeCriteria(criteria: 'all' | readonly string[], output: unknown): readonly Check[] {
  const policy = policySchema.parse({ acceptance: { stage: 'accept', output: 'acceptance', criteria } })
  return judge(policy, { stages: [stage('accept', { outputs: { acceptance: output } })], base: undefined })
    .checks
}

test('criteria keep the verdict of acceptance; one that is not there is not established', () => {
  const all = judgeCriteria('all', { criteria: CRITERIA })
  const some = judgeCriteria(['exact tokens', 'exact token'], { criteria: CRITERIA })

  expect(all.map(({ verdict }) => verdict)).toEqual(['pass', 'not established', 'fail'])
  expect(some).toEqual([
    { kind: 'criterion', name: 'exact tokens', stage: 'accept', verdict: 'pass', found: '96 tokens' },
    expect.objectContaining({
      verdict: 'not established',
      found: expect.stringMatching(/did you mean "exact tokens"\?/),
    }),
  ])
})

test.each([
  [{ criteria: [] }, /the verdict has no criteria/],
  [{ criteria: [{ name: 'x', verdict: 'PASS' }] }, /is no verdict with criteria/],
  ['pass', /is no verdict with criteria/],
])('acceptance that reads %j establishes nothing', (output, found) => {
  const [check] = judgeCriteria('all', output)

  expect(check).toMatchObject({ verdict: 'not established', found: expect.stringMatching(found) })
})

test('a criterion told twice is not established: one of the two may be a failure', () => {
  const twice = [CRITERIA[0], { ...CRITERIA[0], verdict: 'fail' }]

  expect(judgeCriteria(['exact tokens'], { criteria: twice })[0]?.verdict).toBe('not established')
})

test.each([
  [{}, /asks for nothing/],
  [{ stages: [] }, /asks for nothing/],
  [{ stages: ['a'], metric: [] }, /metric/],
  [{ metrics: [{ name: 'a', stage: 's', output: 'o', field: 'f', change: {} }] }, /min, max or both/],
  [{ metrics: [{ name: 'a', stage: 's', output: 'o', field: 'f', judge: 'interval' }] }, /needs `interval`/],
  [{ acceptance: { stage: 's', output: 'o', criteria: [] } }, /criteria/],
])('policy %j is refused', (policy, message) => {
  expect(policySchema.safeParse(policy).error?.message).toMatch(message)
})

const HOSTILE = 'a|b <b>&"x"\n::error::no\r\n##[set-env name=A]1 \u0007\ud800%0A'
const EVIDENCE: Evidence = { stages: [stage('a', FAILED), stage('b')], base: undefined }
const CHECKS: readonly Check[] = [
  { kind: 'stage', name: 'b', stage: 'b', verdict: 'pass', found: 'executed in 2.3 s' },
  { kind: 'criterion', name: 'x "y" <z>', stage: 'a', verdict: 'fail', found: HOSTILE },
  { kind: 'metric', name: 'm', stage: 'a', verdict: 'not established', found: 'no base was named' },
]
const JUDGEMENT = { verdict: 'fail', checks: CHECKS, metrics: {} } as const

test('the report is a line a check, whatever a stage wrote', () => {
  const text = formatJudgement(JUDGEMENT)

  expect(text.split('\n')).toHaveLength(5)
  expect(text).toMatch(/^pass {13}stage {6}b {10}executed in 2\.3 s$/m)
  expect(text).toMatch(/\n\ngate: fail: 1 of 3 checks pass, 1 fail, 1 not established$/)
})

test('an annotation is one line that ends where it should', () => {
  const check = {
    kind: 'criterion',
    name: 'a, b: c',
    stage: 'a',
    verdict: 'fail',
    found: 'x%\r\n::y::',
  } as const

  const placed = formatAnnotation(check, { file: 'stages/a,b/stage.ts', line: 12 })
  const unplaced = formatAnnotation({ ...check, verdict: 'not established' }, undefined)

  expect(placed).toBe(
    '::error file=stages/a%2Cb/stage.ts,line=12,title=pilot gate%3A a%2C b%3A c%3A fail::criterion a, b: c: x%25%0D%0A::y::',
  )
  expect(unplaced).toMatch(/^::warning title=pilot gate/)
})

test('no text of a stage is a command to the runner', () => {
  const text = toPlainLog('fine\n  ::set-output name=a::b\n::error::x\nsaid ##[add-mask]y')

  expect(text.split('\n').filter((line) => line.trimStart().startsWith('::'))).toEqual([])
  expect(text).not.toContain('##[')
})

test('the job summary is markdown in which nothing of a stage is markup', () => {
  const nodes = [
    { stage: 'a', needs: [], outputs: [] },
    { stage: 'b', needs: ['a'], outputs: [] },
  ]

  const text = formatJobSummary(JUDGEMENT, EVIDENCE, nodes)

  expect(text).toContain('## pilot gate: fail\n\n```mermaid\nflowchart LR\n')
  expect(text).toContain('  s0 --> s1\n```')
  expect(text).toContain(
    '| a | failed | 2.3 s | 0 of 2 pass, failed |\n| b | executed | 2.3 s | 1 of 1 pass |',
  )
  expect(text).toContain(
    String.raw`| fail | criterion x "y" \<z\> | a\|b \<b\>\&"x" ::error::no \#\#\[set-env`,
  )
})

test('backslashes and backticks of a stage stay what they are', () => {
  const found = '`a` \\| b'
  const judgement = { ...JUDGEMENT, checks: [{ ...CHECKS[1], found } as Check] }

  expect(formatJobSummary(judgement, EVIDENCE, [])).toContain(String.raw`| \`a\` \\\| b |`)
})

test('a DAG too large for mermaid is counted', () => {
  const nodes = Array.from({ length: 500 }, (_, i) => ({ stage: `s${i}`, needs: [], outputs: [] }))

  expect(formatJobSummary(JUDGEMENT, EVIDENCE, nodes)).toContain('\n500 stages, too many for a picture\n')
})

/** Read by the XML parser of Python's standard library. */
const READ_XML = `
import json, sys
from xml.etree import ElementTree
root = ElementTree.fromstring(sys.stdin.buffer.read())
print(json.dumps([root.attrib, [[c.attrib, [[k.tag, k.attrib["message"]] for k in c]] for c in root.iter("testcase")]]))
`

test('JUnit XML is read back as it was meant', () => {
  const xml = formatJUnit(JUDGEMENT, () => 2_300)

  const read = JSON.parse(execFileSync('python3', ['-c', READ_XML], { input: xml, encoding: 'utf8' }))

  expect(read).toEqual([
    { name: 'pilot gate', tests: '3', failures: '1', errors: '1' },
    [
      [{ classname: 'b', name: 'b', time: '2.300' }, []],
      [
        { classname: 'a', name: 'x "y" <z>' },
        [['failure', HOSTILE.replace('\u0007', '\ufffd').replace('\ud800', '\ufffd')]],
      ],
      [{ classname: 'a', name: 'm' }, [['error', 'no base was named']]],
    ],
  ])
})
