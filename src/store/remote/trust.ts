// Signed results: a DSSE envelope over an in-toto statement, Ed25519, checked against a policy before anything is
// restored. https://github.com/secure-systems-lab/dsse/blob/master/protocol.md

import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto'
import * as z from 'zod'
import { type Digest, digestOf } from '../../model/digest.ts'
import { PilotError } from '../../model/error.ts'
import type { ActionResult } from '../../model/result.ts'

const PAYLOAD_TYPE = 'application/vnd.in-toto+json'
/** Name of the subject that is the result itself; its digest is of `toText(result)`. */
const RESULT_SUBJECT = 'pilot.result.v1'

export const ENVELOPE = z.strictObject({
  payloadType: z.literal(PAYLOAD_TYPE),
  payload: z.base64(),
  signatures: z.array(z.strictObject({ keyid: z.string(), sig: z.base64() })),
})
export type Envelope = z.infer<typeof ENVELOPE>

/** What a statement needs to have; the rest of it is for others. */
interface StatementLike {
  readonly subject: readonly { readonly name: string; readonly digest: Readonly<Record<string, string>> }[]
}

export interface Signer {
  sign(result: ActionResult): Envelope
}

/** @param pem Ed25519 private key, PKCS #8 @param toStatement the statement about a result @throws PilotError `invalid-key` */
export function openSigner(
  pem: string,
  where: string,
  toStatement: (result: ActionResult) => StatementLike,
): Signer {
  const key = readKey(() => createPrivateKey(pem), where)
  const keyid = keyId(createPublicKey(key))
  return {
    sign(result) {
      const statement = toStatement(result)
      const own = { name: RESULT_SUBJECT, digest: { sha256: digestOf(toText(result)) } }
      const payload = Buffer.from(JSON.stringify({ ...statement, subject: [...statement.subject, own] }))
      const sig = sign(null, preAuth(payload), key).toString('base64')
      return { payloadType: PAYLOAD_TYPE, payload: payload.toString('base64'), signatures: [{ keyid, sig }] }
    },
  }
}

export interface Policy {
  /** Undefined where a listed signer vouches for the result; else why it is not accepted, in words. */
  refuse(result: ActionResult, envelope: Envelope | null): string | undefined
}

/** Accepts everything: what the rights on the bucket let in. */
export const NO_POLICY: Policy = { refuse: () => undefined }

const POLICY = z.strictObject({
  schema: z.literal('pilot.trust.v1'),
  signers: z
    .array(
      z.strictObject({
        name: z.string().min(1),
        /** Ed25519 public key, SPKI PEM. */
        publicKey: z.string(),
        /** The `builder.id` that its statements must name; any where absent. */
        builder: z.string().optional(),
      }),
    )
    .min(1),
})

/** @throws PilotError `invalid-policy`, `invalid-key` */
export function readPolicy(text: string, where: string): Policy {
  const parsed = parsePolicy(text, where)
  const signers = parsed.signers.map(({ publicKey, ...signer }) => {
    const key = readKey(() => createPublicKey(publicKey), `${where}, signer "${signer.name}"`)
    return { ...signer, key, id: keyId(key) }
  })
  return {
    refuse(result, envelope) {
      if (!envelope || envelope.signatures.length === 0) return 'it is not signed'
      const payload = Buffer.from(envelope.payload, 'base64')
      const signed = preAuth(payload)
      // The id is a hint only: what counts is whose key fits.
      const signer = signers.find(({ key }) =>
        envelope.signatures.some(({ sig }) => verify(null, signed, key, Buffer.from(sig, 'base64'))),
      )
      if (!signer) return 'it is signed by nobody the policy lists, or not as it stands'
      return mismatch(payload, result, signer)
    },
  }
}

function parsePolicy(text: string, where: string): z.infer<typeof POLICY> {
  let cause: unknown
  try {
    const { success, data, error } = POLICY.safeParse(JSON.parse(text))
    if (success) return data
    cause = new Error(z.prettifyError(error))
  } catch (error) {
    cause = error
  }
  throw new PilotError({
    code: 'invalid-policy',
    blame: 'user',
    what: 'the trust policy cannot be read, so no stored result can be trusted',
    where,
    hint: '{"schema": "pilot.trust.v1", "signers": [{"name": "ci", "publicKey": "-----BEGIN PUBLIC KEY-----…"}]}',
    cause,
  })
}

/** A good signature says only that the statement stands; it must also be about this result, by this builder. */
function mismatch(
  payload: Buffer,
  result: ActionResult,
  signer: { readonly name: string; readonly builder?: string | undefined },
): string | undefined {
  const statement: unknown = JSON.parse(payload.toString('utf8'))
  const { subject, predicate } = statement as {
    subject?: readonly { name?: string; digest?: { sha256?: string } }[]
    predicate?: { runDetails?: { builder?: { id?: string } } }
  }
  const own = subject?.find(({ name }) => name === RESULT_SUBJECT)
  if (own?.digest?.sha256 !== digestOf(toText(result)))
    return `what "${signer.name}" signed is another result`
  const builder = predicate?.runDetails?.builder?.id
  if (signer.builder !== undefined && builder !== signer.builder) {
    return `"${signer.name}" signed it as builder ${builder}, and the policy names ${signer.builder}`
  }
  return undefined
}

/** The result as it is stored and signed: JSON.stringify keeps the order of keys, so parsing and writing again agree. */
function toText(result: ActionResult): string {
  return JSON.stringify(result)
}

/** DSSE's pre-authentication encoding: type and payload, each with its length. */
function preAuth(payload: Buffer): Buffer {
  const head = `DSSEv1 ${Buffer.byteLength(PAYLOAD_TYPE)} ${PAYLOAD_TYPE} ${payload.length} `
  return Buffer.concat([Buffer.from(head), payload])
}

/** sha256 of the public key's SPKI bytes. */
function keyId(key: KeyObject): Digest {
  return hash('sha256', key.export({ type: 'spki', format: 'der' }), 'hex') as Digest
}

function readKey(read: () => KeyObject, where: string): KeyObject {
  let cause: unknown
  try {
    const key = read()
    if (key.asymmetricKeyType === 'ed25519') return key
    cause = new Error(`its type is ${key.asymmetricKeyType}`)
  } catch (error) {
    cause = error
  }
  throw new PilotError({
    code: 'invalid-key',
    blame: 'user',
    what: 'this is no Ed25519 key in PEM',
    where,
    hint: 'make one: openssl genpkey -algorithm ed25519 -out pilot.key && openssl pkey -in pilot.key -pubout',
    cause,
  })
}
