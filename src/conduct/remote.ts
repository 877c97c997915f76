// The stores beyond this machine, opened as the configuration says: which namespaces are read and written, who signs,
// whose signatures count. What is heavy is loaded only when there is such a store.

import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { toStatement } from '../capture/provenance.ts'
import type { Config } from '../config.ts'
import { PilotError } from '../model/error.ts'
import type { LocalStore } from '../model/ports.ts'
import type { RemoteStore } from '../store/remote/store.ts'
import type { Tiers } from '../store/tiers.ts'

export interface RemoteParts {
  readonly config: Config
  readonly loaded: { readonly root: string; readonly pipeline: { readonly store?: string | undefined } }
  readonly local: LocalStore
  readonly runId: string
  readonly onWarning: (code: string, message: string) => void
  readonly onProgress?: ((what: string, doneBytes: number, totalBytes: number) => void) | undefined
}

/** Whose results are accepted, where the project says so. */
const POLICY_FILE = 'pilot.trust.json'
/** A connection that moves nothing for so long is given up. */
const IDLE_MS = 20_000
const ATTEMPTS = 4

/** Undefined where no such store is named, or it is turned off.
 *  @throws PilotError `no-credentials`, `invalid-store`, `invalid-policy`, `invalid-key`, `no-remote` */
export async function openRemoteTiers(parts: RemoteParts): Promise<Tiers | undefined> {
  const { config, local, onWarning, onProgress } = parts
  const { mode, isOnly } = config.remote
  const stores = await openRemoteStores(parts)
  if (!stores) {
    if (isOnly) throw noRemote()
    return undefined
  }
  const { openTiers } = await import('../store/tiers.ts')
  return openTiers({
    local,
    readers: stores.readers,
    writer: mode === 'read-write' ? stores.writer : undefined,
    isOnly,
    onWarning,
    onProgress,
  })
}

export interface RemoteStores {
  /** In the order they are asked. */
  readonly readers: readonly RemoteStore[]
  readonly writer: RemoteStore
}

/** The namespaces of the store: untrusted runs read both and write their own, trusted ones know only theirs. */
export async function openRemoteStores(parts: RemoteParts): Promise<RemoteStores | undefined> {
  const { config, loaded, runId, onWarning, onProgress } = parts
  const { remote } = config
  const address = remote.address ?? loaded.pipeline.store
  if (address === undefined || remote.mode === 'off') return undefined
  const [{ parseS3Address }, { openS3Objects }, { openRemoteStore }, { RemoteError }, keys, trust] =
    await Promise.all([
      import('../store/s3/address.ts'),
      import('../store/s3/objects.ts'),
      import('../store/remote/store.ts'),
      import('../store/remote/objects.ts'),
      import('../store/remote/keys.ts'),
      import('../store/remote/trust.ts'),
    ])
  const where = parseS3Address(address)
  const policy = findPolicy(parts)
  const signingKey =
    remote.signingKey && readFile(resolveIn(loaded.root, remote.signingKey), 'PILOT_SIGNING_KEY')
  const builder = remote.builder ?? 'urn:hessian-pilot:local'
  let doneBytes = 0
  const open = async (prefix: string, isOwn: boolean): Promise<RemoteStore> => {
    const objects = await openS3Objects({
      address: { ...where, prefix: where.prefix + prefix },
      idleMs: IDLE_MS,
      attempts: ATTEMPTS,
    })
    return openRemoteStore({
      objects,
      holder: `run ${runId} on ${hostname()}`,
      beatMs: remote.beatMs,
      isWritable: isOwn && remote.mode === 'read-write',
      policy: policy && trust.readPolicy(policy.text, policy.where),
      signer: signingKey
        ? trust.openSigner(signingKey, remote.signingKey ?? '', (result) => toStatement(result, builder))
        : undefined,
      onWarning,
      onBytes: (direction, bytes) => {
        doneBytes += bytes
        onProgress?.(direction === 'up' ? 'sent' : 'fetched', doneBytes, 0)
      },
    })
  }
  try {
    const trusted = await open('', remote.trust === 'trusted')
    if (remote.trust === 'trusted') return { readers: [trusted], writer: trusted }
    const own = await open(keys.UNTRUSTED_PREFIX, true)
    return { readers: [own, trusted], writer: own }
  } catch (error) {
    if (!(error instanceof RemoteError)) throw error
    const { reason, message, hint } = error
    throw new PilotError({
      code: reason,
      blame: 'environment',
      what: message,
      where: address,
      hint,
      cause: error.cause,
    })
  }
}

function findPolicy({
  config,
  loaded,
}: RemoteParts): { readonly text: string; readonly where: string } | undefined {
  const named = config.remote.policy
  const path = resolveIn(loaded.root, named ?? POLICY_FILE)
  // A policy that is named and not there must not count as none.
  if (named === undefined && !existsSync(path)) return undefined
  return { text: readFile(path, 'PILOT_TRUST_POLICY'), where: named ?? POLICY_FILE }
}

function readFile(path: string, variable: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new PilotError({
      code: 'unreadable',
      blame: 'user',
      what: `${variable} names a file that cannot be read`,
      where: path,
      hint: 'correct the path, or unset it',
      cause: error,
    })
  }
}

function resolveIn(root: string, path: string): string {
  return isAbsolute(path) ? path : join(root, path)
}

export function noRemote(): PilotError {
  return new PilotError({
    code: 'no-remote',
    blame: 'user',
    what: 'no store beyond this machine is named',
    hint: 'set PILOT_STORE=s3://bucket/prefix?region=…&endpoint=…, or `store` of definePipeline',
  })
}
