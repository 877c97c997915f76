// What differs between two actions, field by field: what `why` prints and what a plan gives as its reason.

import type { Action } from '../model/action.ts'

export interface FieldChange {
  /** `argv[2]`, `inputs.questions`, `environment.SEED`, `tools.uv`. */
  readonly field: string
  /** Text of the value, or null where the field was not there. */
  readonly old: string | null
  readonly new: string | null
}

/** Every field in which the actions differ; empty when they are the same. */
export function changedFields(before: Action, after: Action): readonly FieldChange[] {
  const old = flatten(before)
  const now = flatten(after)
  const changes: FieldChange[] = []
  for (const field of new Set([...old.keys(), ...now.keys()])) {
    const [was, is] = [old.get(field) ?? null, now.get(field) ?? null]
    if (was !== is) changes.push({ field, old: was, new: is })
  }
  return changes
}

function flatten(action: Action): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  for (const [i, word] of action.argv.entries()) fields.set(`argv[${i}]`, word)
  for (const [name, input] of Object.entries(action.inputs)) {
    fields.set(`inputs.${name}`, input.digest)
    fields.set(`inputs.${name}.as`, input.as)
    fields.set(`inputs.${name}.kind`, input.kind)
  }
  for (const [name, value] of Object.entries(action.environment)) {
    fields.set(`environment.${name}`, value === null ? '(unset)' : JSON.stringify(value))
  }
  for (const [name, output] of Object.entries(action.outputs)) {
    fields.set(`outputs.${name}`, `${output.kind} ${output.path}`)
    if (output.schema) fields.set(`outputs.${name}.schema`, output.schema)
  }
  for (const [name, value] of Object.entries(action.platform)) fields.set(`platform.${name}`, value)
  for (const [name, value] of Object.entries(action.tools)) fields.set(`tools.${name}`, value)
  for (const [name, value] of Object.entries(action.accelerator)) fields.set(`accelerator.${name}`, value)
  if (action.lockfile) fields.set('lockfile', action.lockfile)
  if (action.image) fields.set('image', action.image)
  return fields
}
