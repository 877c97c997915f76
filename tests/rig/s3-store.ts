// Remote stores for tests, in the real server's bucket.

import { openRemoteStore, type RemoteOptions, type RemoteStore } from '../../src/store/remote/store.ts'
import { parseS3Address } from '../../src/store/s3/address.ts'
import { openS3Objects } from '../../src/store/s3/objects.ts'
import type { S3Server } from './s3-server.ts'

let count = 0

export interface TestRemote {
  readonly store: RemoteStore
  readonly warnings: string[]
}

/** @param options `endpoint`: of a proxy; `prefix`: another store's, to meet there; fresh by default */
export async function openTestRemote(
  server: S3Server,
  {
    endpoint,
    prefix = `store-${count++}`,
    idleMs = 15_000,
    ...options
  }: Partial<RemoteOptions> & {
    readonly endpoint?: string
    readonly prefix?: string
    readonly idleMs?: number
  } = {},
): Promise<TestRemote> {
  const warnings: string[] = []
  const address = parseS3Address(server.address(prefix, endpoint))
  const objects = await openS3Objects({ address, idleMs, attempts: 3 })
  const store = openRemoteStore({
    objects,
    holder: 'run 1 on test',
    beatMs: 5_000,
    isWritable: true,
    onWarning: (_code, message) => warnings.push(message),
    ...options,
  })
  return { store, warnings }
}
