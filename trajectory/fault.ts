// What is reported of a breach, and the error that carries it.
import { RULES, type Rule } from './rule.ts'

/** One breach of one rule at one place. */
export interface Fault {
  readonly rule: Rule
  /** 1-based line of the file (or number of the record given); 0 where no line is to blame. */
  readonly line: number
  /** JSON path, `$.calls[0].call_id`; null where the row could not be read as JSON. */
  readonly path: string | null
  /** Full sentence without the final stop. */
  readonly message: string
  /** What was found, shortened; empty where there is nothing to show. */
  readonly found: string
  /** What to do. */
  readonly hint: string
}

/** Receives a breach: the rule, the path (null: not JSON) and what was found there. */
export type Report = (rule: Rule, path: string | null, found: string) => void

export function toFault(rule: Rule, line: number, path: string | null, found: string): Fault {
  const [claim, hint] = RULES[rule]
  const place = path === null ? '' : `${path}: `
  return {
    rule,
    line,
    path,
    message: `${place}${claim}${found === '' ? '' : `, found ${found}`}`,
    found,
    hint,
  }
}

/** A breach of the contract, thrown at the first fault. */
export class TrajectoryError extends Error {
  readonly fault: Fault
  readonly rule: Rule
  readonly line: number
  readonly path: string | null
  /** The file, where there is one. */
  readonly file: string | undefined

  constructor(fault: Fault, file?: string) {
    super(`${placeOf(fault, file)}[${fault.rule}] ${fault.message}`)
    this.name = 'TrajectoryError'
    this.fault = fault
    this.rule = fault.rule
    this.line = fault.line
    this.path = fault.path
    this.file = file
  }
}

function placeOf(fault: Fault, file: string | undefined): string {
  if (file !== undefined) return `${file}:${fault.line}: `
  return fault.line > 0 ? `record ${fault.line}: ` : ''
}

/** The lines of a fault as the terminal shows them. */
export function formatFault(fault: Fault, file: string): string {
  const path = fault.path === null ? '' : ` ${toPrintable(fault.path)}`
  const lines = [`error[${fault.rule}]: ${RULES[fault.rule][0]}`, `  where   ${file}:${fault.line}${path}`]
  if (fault.found !== '') lines.push(`  found   ${fault.found}`)
  lines.push(`  hint    ${fault.hint}`)
  return `${lines.join('\n')}\n`
}

/** Shows a value in one short printable line; never fails, whatever the value. */
export function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (typeof value === 'string')
    return shorten(toPrintable(JSON.stringify(value.slice(0, SHOWN))), value.length)
  if (typeof value === 'bigint') return shorten(value.toString().slice(0, SHOWN), SHOWN)
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return String(value)
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${value.length}`
  if (isReal(value)) return value.text.length <= SHOWN ? value.text : `${value.text.slice(0, SHOWN)}…`
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

const SHOWN = 60

function isReal(value: unknown): value is { readonly text: string } {
  return typeof value === 'object' && value !== null && 'text' in value && 'real' in value
}

function shorten(text: string, length: number): string {
  return length > SHOWN ? `${text}… (${length} characters)` : text
}

/** Escapes what a terminal might obey or hide: control characters, line separators, direction marks. */
export function toPrintable(text: string): string {
  return text.replace(
    /[\0-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\p{Cs}/gu,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
