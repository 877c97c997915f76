// JSON values compared field by field. Pure.

import type { Allowance } from './difference.ts'

export interface JsonDifference {
  /** JSON path of the first difference that is not allowed; undefined where there is none. */
  readonly at: string | undefined
  readonly what: string
  /** Largest difference of two numbers that was allowed. */
  readonly largest: number
}

/** The first difference, depth first, in the order of the left value. */
export function compareJson(left: unknown, right: unknown, { tolerance, ignore }: Allowance): JsonDifference {
  let largest = 0

  function walk(
    a: unknown,
    b: unknown,
    path: string,
  ): { readonly at: string; readonly what: string } | undefined {
    if (typeof a === 'number' && typeof b === 'number') {
      const difference = Math.abs(a - b)
      if (difference <= tolerance || Object.is(a, b)) {
        largest = Math.max(largest, Object.is(a, b) ? 0 : difference)
        return undefined
      }
      return { at: path, what: `${a} and ${b}` }
    }
    if (Array.isArray(a) && Array.isArray(b)) {
      if (a.length !== b.length) return { at: path, what: `${a.length} and ${b.length} items` }
      return firstOf(a.keys(), (i) => walk(a[i], b[i], `${path}[${i}]`))
    }
    if (isRecord(a) && isRecord(b)) {
      const names = new Set([...Object.keys(a), ...Object.keys(b)])
      return firstOf(names, (name) => {
        if (ignore.has(name)) return undefined
        const here = `${path}.${name}`
        if (!Object.hasOwn(a, name)) return { at: here, what: 'only in the second' }
        if (!Object.hasOwn(b, name)) return { at: here, what: 'only in the first' }
        return walk(a[name], b[name], here)
      })
    }
    return a === b ? undefined : { at: path, what: `${show(a)} and ${show(b)}` }
  }

  const found = walk(left, right, '$')
  return { at: found?.at, what: found?.what ?? '', largest }
}

function firstOf<T, R>(items: Iterable<T>, find: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function show(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 60)
}
