// Provenance of a result: an in-toto Statement v1 with the SLSA v1 provenance predicate, made of the result alone.
// Pure. Signing it is not done here. https://in-toto.io/Statement/v1, https://slsa.dev/spec/v1.0/provenance

import type { Digest } from '../model/digest.ts'
import type { ActionResult } from '../model/result.ts'

export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1'
export const PREDICATE_TYPE = 'https://slsa.dev/provenance/v1'
/** Says how externalParameters and internalParameters are to be read; a new form gets a new name. */
export const BUILD_TYPE = 'urn:hessian-pilot:stage:v1'

export interface ResourceDescriptor {
  readonly name: string
  readonly digest: Readonly<Record<string, string>>
}

export interface Statement {
  readonly _type: typeof STATEMENT_TYPE
  readonly subject: readonly ResourceDescriptor[]
  readonly predicateType: typeof PREDICATE_TYPE
  readonly predicate: ProvenancePredicate
}

export interface ProvenancePredicate {
  readonly buildDefinition: {
    readonly buildType: string
    /** What the user decides. */
    readonly externalParameters: Readonly<Record<string, unknown>>
    /** What pilot and the machine decided. */
    readonly internalParameters: Readonly<Record<string, unknown>>
    /** What went in, by content. */
    readonly resolvedDependencies: readonly ResourceDescriptor[]
  }
  readonly runDetails: {
    readonly builder: { readonly id: string; readonly version: Readonly<Record<string, string>> }
    readonly metadata: {
      readonly invocationId: string
      readonly startedOn: string
      readonly finishedOn: string
    }
    readonly byproducts: readonly ResourceDescriptor[]
  }
}

/** The statement about a result.
 *  @param builder who vouches for the run: the URI of a CI workflow, or of this machine's user */
export function toStatement(result: ActionResult, builder: string): Statement {
  return {
    _type: STATEMENT_TYPE,
    subject: toSubject(result),
    predicateType: PREDICATE_TYPE,
    predicate: {
      buildDefinition: toDefinition(result),
      runDetails: toDetails(result, builder),
    },
  }
}

/** The outputs, and the tree that holds them. From the capture. */
function toSubject({ tree, outputs }: ActionResult): readonly ResourceDescriptor[] {
  const named = Object.entries(outputs).map(([name, { kind, digest }]) => describe(name, kind, digest))
  return [describe('.', 'tree', tree), ...named]
}

function toDefinition(result: ActionResult): ProvenancePredicate['buildDefinition'] {
  const { action, record, actionDigest } = result
  return {
    buildType: BUILD_TYPE,
    externalParameters: {
      // Declared in the pipeline, placeholders unfilled: the action's own fields.
      argv: action.argv,
      environment: action.environment,
      outputs: action.outputs,
      image: action.image,
      accelerator: action.accelerator,
      tools: action.tools,
      platform: action.platform,
      // Name in the pipeline when it ran; not part of the action.
      stage: record.stage,
    },
    internalParameters: {
      // Computed over the action: the key under which the result is kept.
      actionDigest,
      // As started: placeholders filled, secrets redacted. From the executor.
      argv: record.argv,
      environment: record.environment,
      isolation: record.isolation,
      image: record.image,
      // Of the image that was run, and of the one pilot was told it runs in.
      ...(record.imageConfig !== undefined && { imageConfig: record.imageConfig }),
      ...(record.claimedImage !== undefined && { claimedImage: record.claimedImage }),
      // Measured by the executor and by the host probe.
      host: record.host,
      usage: record.usage,
      attempt: record.attempt,
    },
    resolvedDependencies: toDependencies(result),
  }
}

/** Inputs by content as the action was keyed, the lock among them, and the image. */
function toDependencies({ action }: ActionResult): readonly ResourceDescriptor[] {
  const inputs = Object.entries(action.inputs).map(([name, { kind, digest }]) => describe(name, kind, digest))
  const lock = action.lockfile ? [describe('lockfile', 'file', action.lockfile)] : []
  const [image, sha256] = action.image?.split('@sha256:') ?? []
  return image && sha256 ? [...inputs, ...lock, { name: image, digest: { sha256 } }] : [...inputs, ...lock]
}

function toDetails({ record }: ActionResult, builder: string): ProvenancePredicate['runDetails'] {
  const startedMs = Date.parse(record.startedAt)
  return {
    // Given by the caller; versions from the running pilot.
    builder: { id: builder, version: { pilot: record.pilotVersion, node: record.nodeVersion } },
    metadata: {
      invocationId: record.runId,
      startedOn: record.startedAt,
      // The start plus the wall time measured.
      finishedOn: new Date(startedMs + record.usage.wallMs).toISOString(),
    },
    // The log as kept, after redaction.
    byproducts: record.log ? [describe('log', 'file', record.log.digest)] : [],
  }
}

/** A file's digest is plain sha256. A folder's is pilot's own over its entries, so it is not called sha256: no other
 *  tool computes the same. */
function describe(name: string, kind: string, digest: Digest): ResourceDescriptor {
  return { name, digest: kind === 'tree' ? { 'pilot.tree.v1': digest } : { sha256: digest } }
}
