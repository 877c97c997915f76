// What the strict reader read, as the plain record it stands for; only for values that passed every rule.
import { Real } from './json-value.ts'
import type { Trajectory } from './schema.ts'

/** Plain objects and numbers; integers that a double cannot hold stay `bigint`. */
export function toTrajectory(value: unknown): Trajectory {
  const record = toPlain(value) as { reward: { value: number | bigint } } // passed the rules
  record.reward.value = Number(record.reward.value)
  return record as unknown as Trajectory
}

function toPlain(value: unknown): unknown {
  if (value instanceof Real) return value.value
  if (Array.isArray(value)) return value.map(toPlain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, toPlain(field)]))
}
