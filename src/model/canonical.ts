// Canonical JSON: one spelling for one value, so that its digest is stable across versions and machines.
// Keys sorted by UTF-16 code unit, no white space, integers only (a float's spelling is not ours to promise).

export type CanonicalValue =
  | string
  | number
  | boolean
  | null
  | readonly CanonicalValue[]
  | { readonly [key: string]: CanonicalValue | undefined }

/** The canonical JSON of `value`; a key whose value is `undefined` is left out.
 *  @throws TypeError for a number that is not a safe integer, or a string with a lone surrogate. */
export function toCanonicalJson(value: CanonicalValue): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw new TypeError(`${value} has no canonical form: use a string`)
    return String(value === 0 ? 0 : value)
  }
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw new TypeError(`a lone surrogate in ${JSON.stringify(value)}`)
    return JSON.stringify(value)
  }
  if (isList(value)) return `[${value.map(toCanonicalJson).join()}]`
  const fields: string[] = []
  for (const key of Object.keys(value).sort()) {
    const field = value[key]
    if (field !== undefined) fields.push(`${toCanonicalJson(key)}:${toCanonicalJson(field)}`)
  }
  return `{${fields.join()}}`
}

function isList(value: object): value is readonly CanonicalValue[] {
  return Array.isArray(value)
}
