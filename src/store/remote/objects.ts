// What the remote store asks of a place where objects are kept: whole objects by key, conditional writes, listings.
// The keys are those of keys.ts. Implementations know nothing of trees, results or leases.

/** Where objects rest. Every method may throw `RemoteError`; none throws for an object that is not there. */
export interface ObjectStore {
  /** For messages: `s3://bucket/prefix`. */
  readonly name: string
  head(key: string): Promise<ObjectFacts | undefined>
  /** The whole object. What arrived short, or stalled, is fetched again; what its own checksum refuses is `corrupt`. */
  get(key: string): Promise<{ readonly bytes: Buffer; readonly etag: string } | undefined>
  /** Writes an object with its sha256 as checksum, which the service verifies.
   *  @returns its ETag; undefined where the condition did not hold */
  put(key: string, bytes: Uint8Array, condition?: WriteCondition): Promise<string | undefined>
  /** Copies on the server's side. False where there is nothing to copy. */
  copy(from: string, to: string): Promise<boolean>
  remove(keys: readonly string[]): Promise<void>
  /** Objects whose key begins so, by key. */
  list(prefix: string): AsyncIterable<ListedObject>
}

export interface ObjectFacts {
  readonly sizeBytes: number
  /** ms since the epoch, by the server's clock. */
  readonly modifiedMs: number
  readonly etag: string
}

export interface ListedObject extends ObjectFacts {
  readonly key: string
}

/** `absent`: only where there is none. An ETag: only where that is still what is there. */
export type WriteCondition = { readonly type: 'absent' } | { readonly type: 'same'; readonly etag: string }

/** What keeps a remote store from answering, in words for people. */
export type RemoteCause =
  | 'no-credentials'
  | 'forbidden'
  | 'no-bucket'
  | 'wrong-region'
  | 'clock-skew'
  | 'throttled'
  | 'timeout'
  | 'unreachable'
  | 'server'

export class RemoteError extends Error {
  readonly reason: RemoteCause
  readonly hint: string

  constructor(reason: RemoteCause, message: string, hint: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'RemoteError'
    this.reason = reason
    this.hint = hint
  }

  /** True where asking again for something else would end the same way. */
  get isLasting(): boolean {
    return this.reason !== 'throttled' && this.reason !== 'timeout' && this.reason !== 'server'
  }
}
