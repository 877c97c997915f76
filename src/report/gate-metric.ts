// One metric against its bounds: of itself, of its change from the base, of its ratio to the base. Pure.

import type { MetricPolicy } from './gate-policy.ts'

export interface Measured {
  readonly value: number
  readonly interval: readonly [number, number] | undefined
}

type Verdict = 'pass' | 'fail' | 'not established'

interface Bound {
  readonly what: string
  readonly min: number | undefined
  readonly max: number | undefined
  /** What is held against it; undefined where it needs a base and there is none. */
  readonly ends: readonly [number, number] | undefined
  /** Why there are no ends. */
  readonly missing: string
}

/** Every bound must hold; `found` names the value, its interval, the base, and the bounds that do not hold. */
export function judgeMetric(
  metric: MetricPolicy,
  measured: Measured,
  base: Readonly<Record<string, number>> | undefined,
): { readonly verdict: Verdict; readonly found: string } {
  const before = base && Object.hasOwn(base, metric.name) ? base[metric.name] : undefined
  const missing = base ? 'the base has no such metric' : 'no base was named'
  const judged = boundsOf(metric, measured, before, missing).map((bound) => [bound, hold(bound)] as const)
  const broken = judged.filter(([, verdict]) => verdict !== 'pass')
  const verdict = broken.some(([, each]) => each === 'fail')
    ? 'fail'
    : broken.length > 0
      ? 'not established'
      : 'pass'
  const shown = (broken.length > 0 ? broken : judged).map(([bound, each]) => formatBound(bound, each))
  return { verdict, found: [formatMeasured(measured, before), ...shown].join('; ') }
}

function boundsOf(
  { judge, min, max, change, ratio }: MetricPolicy,
  { value, interval }: Measured,
  before: number | undefined,
  missing: string,
): readonly Bound[] {
  const [low, high] = judge === 'interval' && interval ? interval : [value, value]
  const bounds: Bound[] = []
  if (min !== undefined || max !== undefined)
    bounds.push({ what: 'value', min, max, ends: [low, high], missing: '' })
  if (change) {
    const ends = before === undefined ? undefined : ([low - before, high - before] as const)
    bounds.push({ what: 'change', min: change.min, max: change.max, ends, missing })
  }
  if (ratio) {
    // By a base of zero or below, more and less lose their sense.
    const ends = before !== undefined && before > 0 ? ([low / before, high / before] as const) : undefined
    const why = before === undefined ? missing : 'the base is not above 0'
    bounds.push({ what: 'ratio', min: ratio.min, max: ratio.max, ends, missing: why })
  }
  return bounds
}

function hold({ min = -Infinity, max = Infinity, ends }: Bound): Verdict {
  if (!ends) return 'not established'
  const [low, high] = ends
  if (low >= min && high <= max) return 'pass'
  return high < min || low > max ? 'fail' : 'not established'
}

function formatBound({ what, min, max, ends, missing }: Bound, verdict: Verdict): string {
  const asked = [
    ...(min === undefined ? [] : [`at least ${formatNumber(min)}`]),
    ...(max === undefined ? [] : [`at most ${formatNumber(max)}`]),
  ].join(' and ')
  if (!ends) return `${what} ${asked} is asked, and ${missing}`
  const [low, high] = ends
  const got = low === high ? formatNumber(low) : `[${formatNumber(low)}, ${formatNumber(high)}]`
  const isTold = what === 'value' && low === high
  return `${what} ${isTold ? '' : `${got} `}${VERBS[verdict]} ${asked}`
}

const VERBS: Readonly<Record<Verdict, string>> = {
  pass: 'is',
  fail: 'is not',
  'not established': 'is not surely',
}

function formatMeasured({ value, interval }: Measured, before: number | undefined): string {
  const ends = interval ? ` [${interval.map(formatNumber).join(', ')}]` : ''
  return `${formatNumber(value)}${ends}${before === undefined ? '' : `, base ${formatNumber(before)}`}`
}

/** Six significant digits, without trailing zeros. */
function formatNumber(value: number): string {
  return String(Number(value.toPrecision(6)))
}

/** What stands at `a.0.b`; undefined where nothing does. */
export function readPath(json: unknown, path: string): unknown {
  let at = json
  for (const key of path.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Readonly<Record<string, unknown>>)[key]
  }
  return at
}
