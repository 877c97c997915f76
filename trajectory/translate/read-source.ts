// Parses what a source wrote with its schema; what does not fit is a fault with its place.

import type { z } from 'zod'
import { TranslateError } from './translate-error.ts'

/** @throws TranslateError by rule `source-shape` */
export function readSource<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new TranslateError(
    parsed.error.issues.map((issue) => ({
      rule: 'source-shape',
      rollout: null,
      path: `$${issue.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')}`,
      message: issue.message,
    })),
  )
}
