// How the strict reader gives back JSON: like JSON.parse, but what JSON.parse forgets is kept.

/** A number written with a fraction or an exponent: `1.0` is no integer. */
export class Real {
  readonly real = true
  readonly value: number
  readonly text: string

  constructor(value: number, text: string) {
    this.value = value
    this.text = text
  }
}

/** Stands for a value that was already reported, so that it is not reported again. */
export const BROKEN = Symbol('reported')

/** Integers are `number` up to 2^53 - 1 and `bigint` above; objects have no prototype, so `__proto__` is a key like others. */
export type JsonValue =
  | null
  | boolean
  | string
  | number
  | bigint
  | Real
  | typeof BROKEN
  | JsonValue[]
  | JsonObject
export interface JsonObject {
  [key: string]: JsonValue
}

/** A fault of the JSON text itself. */
export interface JsonFault {
  readonly rule:
    | 'json.syntax'
    | 'json.depth'
    | 'json.duplicate_key'
    | 'json.nonfinite'
    | 'string.lone_surrogate'
  readonly path: string | null
  readonly found: string
}

/** The value, unless the text could not be read to its end; and all that was wrong with the text. */
export interface JsonReading {
  readonly value: JsonValue | undefined
  readonly faults: readonly JsonFault[]
}

/** `$.calls[0].call_id` from its parts; keys stand as they are. */
export function formatPath(parts: readonly (string | number)[]): string {
  let path = '$'
  for (const part of parts) path += typeof part === 'number' ? `[${part}]` : `.${part}`
  return path
}
