// An entry of the remote action cache: the result, the attestation, and the fence of the lease it was made under.

import * as z from 'zod'
import { actionDigest } from '../../model/action.ts'
import { type Digest, digestOf } from '../../model/digest.ts'
import { type ActionResult, RESULT_SCHEMA } from '../../model/result.ts'
import { contentAt, type Tree } from '../../model/tree.ts'
import { ENVELOPE, type Envelope } from './trust.ts'

const ENTRY_SCHEMA = 'pilot.entry.v1'

export interface Entry {
  readonly result: ActionResult
  readonly attestation: Envelope | null
  /** Of the lease the writer held; 0 where there was none. */
  readonly fence: number
}

const DIGEST = z.string().regex(/^[0-9a-f]{64}$/)
const SHAPE = z.strictObject({
  schema: z.literal(ENTRY_SCHEMA),
  fence: z.int().nonnegative(),
  attestation: ENVELOPE.nullable(),
  /** Of the result's JSON: not every field of it is proved by another digest. */
  sha256: DIGEST,
  result: z.looseObject({
    schema: z.literal(RESULT_SCHEMA),
    actionDigest: DIGEST,
    action: z.looseObject({}),
    tree: DIGEST,
    outputs: z.record(
      z.string(),
      z.looseObject({
        kind: z.enum(['file', 'tree', 'json']),
        path: z.string(),
        digest: DIGEST,
        sizeBytes: z.number(),
        files: z.number(),
      }),
    ),
    record: z.looseObject({
      stage: z.string(),
      runId: z.string(),
      startedAt: z.string(),
      argv: z.array(z.string()),
    }),
  }),
})

export function encodeEntry({ result, attestation, fence }: Entry): Buffer {
  return Buffer.from(
    JSON.stringify({ schema: ENTRY_SCHEMA, fence, attestation, sha256: sumOf(result), result }),
  )
}

/** Undefined where the bytes are no entry of this action: the action kept in it must have that very digest. */
export function decodeEntry(key: Digest, bytes: Buffer): Entry | undefined {
  try {
    const raw: unknown = JSON.parse(bytes.toString('utf8'))
    const { fence, attestation, sha256 } = SHAPE.parse(raw)
    // As it stands, not as zod copies it: the order of its keys is signed too.
    const { result } = raw as { readonly result: ActionResult }
    if (sumOf(result) !== sha256 || result.actionDigest !== key || actionDigest(result.action) !== key)
      return undefined
    return { fence, attestation, result }
  } catch {
    return undefined
  }
}

function sumOf(result: ActionResult): Digest {
  return digestOf(JSON.stringify(result))
}

/** True where every output is what the tree holds at its path. */
export function isConsistent({ outputs }: ActionResult, tree: Tree): boolean {
  return Object.values(outputs).every(({ path, digest }) => contentAt(tree, path)?.digest === digest)
}
