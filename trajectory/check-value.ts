// The building blocks of the rules: checks of one value each. A value is what the strict reader or any JSON parser gave.
import { describe, type Report } from './fault.ts'
import { isBlank } from './identifier.ts'
import { BROKEN, Real } from './json-value.ts'
import { isMutableRevision } from './revision.ts'
import type { Rule } from './rule.ts'

/** Checks the value at a path and reports its faults. */
export type Check = (value: unknown, path: string, report: Report) => void

/** What an object has to hold: a check for each field; fields in `optional` may be absent. */
export interface Fields {
  readonly checks: ReadonlyMap<string, Check>
  readonly optional?: ReadonlySet<string>
}

export function fields(checks: Record<string, Check>, ...optional: string[]): Fields {
  return { checks: new Map(Object.entries(checks)), optional: new Set(optional) }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Real)
}

/** Every field present and sound, none unknown. A field that is `undefined` counts as absent. */
export function checkObject(value: unknown, path: string, report: Report, wanted: Fields): void {
  if (value === BROKEN) return
  if (!isObject(value)) {
    report('type.object', path, describe(value))
    return
  }
  for (const [name, check] of wanted.checks) {
    const field = Object.hasOwn(value, name) ? value[name] : undefined
    if (field !== undefined) check(field, `${path}.${name}`, report)
    else if (!wanted.optional?.has(name)) report('field.missing', `${path}.${name}`, '')
  }
  for (const name of Object.keys(value)) {
    if (!wanted.checks.has(name) && value[name] !== undefined) report('field.unknown', `${path}.${name}`, '')
  }
}

/** @returns the items, undefined where the value is no array. */
export function checkArray(value: unknown, path: string, report: Report): readonly unknown[] | undefined {
  if (value === BROKEN) return undefined
  if (Array.isArray(value)) return value
  report('type.array', path, describe(value))
  return undefined
}

/** @returns the text, undefined where it is none or broken. */
export function checkText(value: unknown, path: string, report: Report): string | undefined {
  if (value === BROKEN) return undefined
  if (typeof value !== 'string') report('type.string', path, describe(value))
  else if (!value.isWellFormed()) report('string.lone_surrogate', path, describe(value))
  else return value
  return undefined
}

export function checkIdentifier(value: unknown, path: string, report: Report): string | undefined {
  const text = checkText(value, path, report)
  if (text === undefined || !isBlank(text)) return text
  report('identifier.empty', path, describe(text))
  return undefined
}

export function checkRevision(value: unknown, path: string, report: Report): void {
  const text = checkIdentifier(value, path, report)
  if (text !== undefined && isMutableRevision(text)) report('revision.mutable', path, describe(text))
}

export function checkSha256(value: unknown, path: string, report: Report): void {
  const text = checkText(value, path, report)
  if (text !== undefined && !/^[0-9a-f]{64}$/.test(text)) report('sha256.format', path, describe(text))
}

/** One of a few words; any other value, of whatever type, breaks the same rule. */
export function oneOf(rule: Rule, words: readonly string[]): Check {
  return (value, path, report) => {
    if (value !== BROKEN && !(typeof value === 'string' && words.includes(value)))
      report(rule, path, describe(value))
  }
}

export function checkNonnegativeInteger(value: unknown, path: string, report: Report): void {
  if (value === BROKEN) return
  if (typeof value === 'number' && !Number.isFinite(value)) report('json.nonfinite', path, describe(value))
  else if (!Number.isInteger(value) && typeof value !== 'bigint')
    report('type.integer', path, describe(value))
  else if ((value as number | bigint) < 0) report('integer.negative', path, describe(value)) // one of the two: see above
}

/** @returns the number as a double, undefined where it is none; an integer too large for a double is not finite. */
export function checkFinite(value: unknown, path: string, report: Report): number | undefined {
  if (value === BROKEN) return undefined
  const number = value instanceof Real ? value.value : typeof value === 'bigint' ? Number(value) : value
  if (typeof number !== 'number') report('type.number', path, describe(value))
  else if (!Number.isFinite(number)) report('json.nonfinite', path, describe(value))
  else return number
  return undefined
}
