// Roots of a remote store: which actions gc must keep, and for whom. One object a run, one a pin.

import * as z from 'zod'

const ROOT_SCHEMA = 'pilot.root.v1'

const SHAPE = z.looseObject({
  schema: z.literal(ROOT_SCHEMA),
  project: z.string(),
  at: z.string(),
  pin: z.string().optional(),
  good: z.boolean().optional(),
  keys: z.array(z.string()),
})

export interface Root {
  readonly project: string
  /** ISO 8601, UTC. */
  readonly at: string
  /** Action digests. */
  readonly keys: readonly string[]
  /** Of a pin: its name. */
  readonly pin?: string | undefined
  /** Of a run: its id, whether it went well, and the trees of its results. */
  readonly run?: string | undefined
  readonly good?: boolean | undefined
  readonly trees?: readonly string[] | undefined
}

export function encodeRoot(root: Root): Buffer {
  return Buffer.from(JSON.stringify({ schema: ROOT_SCHEMA, ...root }))
}

/** Undefined where the bytes are no root: it keeps nothing. */
export function decodeRoot(bytes: Buffer): Root | undefined {
  try {
    return SHAPE.safeParse(JSON.parse(bytes.toString('utf8'))).data
  } catch {
    return undefined
  }
}
