// Objects in S3, through the AWS SDK: the only file that knows it. https://docs.aws.amazon.com/AmazonS3/latest/API

import { createHash } from 'node:crypto'
import {
  CopyObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { type ObjectStore, RemoteError, type WriteCondition } from '../remote/objects.ts'
import type { S3Address } from './address.ts'
import { statusOf, toRemoteError } from './cause.ts'

export interface S3Options {
  readonly address: S3Address
  /** A connection that moves no byte for so long is given up. Same-key races are answered late, so not below 15 s. */
  readonly idleMs: number
  /** Tries of a request, the first among them. The SDK waits between them as `Retry-After` or its backoff says. */
  readonly attempts: number
}

/** Connections at the same time. */
const SOCKETS = 32
/** Keys that one request deletes, at most. */
const DELETE_BATCH = 1000

/** @throws RemoteError `no-credentials`: found out here, not after an hour of training */
export async function openS3Objects({ address, idleMs, attempts }: S3Options): Promise<ObjectStore> {
  const { bucket, prefix, region, endpoint } = address
  const client = new S3Client({
    region: region ?? process.env['AWS_REGION'] ?? process.env['AWS_DEFAULT_REGION'] ?? 'us-east-1',
    ...(endpoint && { endpoint, forcePathStyle: true }),
    maxAttempts: attempts,
    // Every byte is verified by its own digest; the checksums sent are sha256, given by hand.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: 5_000,
      requestTimeout: idleMs,
      socketTimeout: idleMs,
      throwOnRequestTimeout: true,
      httpAgent: { keepAlive: true, maxSockets: SOCKETS },
      httpsAgent: { keepAlive: true, maxSockets: SOCKETS },
    },
  })
  const failing = (error: unknown) => toRemoteError(error, address)
  await client.config.credentials().catch((error: unknown) => {
    throw failing(error)
  })
  const at = (key: string) => ({ Bucket: bucket, Key: prefix + key })

  /** The answer, or undefined where the object (not the bucket) is absent or a condition does not hold. */
  async function ask<T>(request: Promise<T>): Promise<T | undefined> {
    try {
      return await request
    } catch (error) {
      if (isAbsent(error) || statusOf(error) === 412) return undefined
      throw failing(error)
    }
  }

  async function get(key: string) {
    for (let attempt = 1; ; attempt++) {
      const answer = await ask(client.send(new GetObjectCommand(at(key))))
      if (!answer?.Body) return undefined
      try {
        // The SDK's own retries end where the body begins.
        const bytes = await readWhole(
          answer.Body as AsyncIterable<Uint8Array>,
          answer.ContentLength ?? 0,
          idleMs,
        )
        return { bytes, etag: answer.ETag ?? '' }
      } catch (error) {
        if (attempt >= attempts) throw failing(error)
      }
    }
  }

  return {
    name: `s3://${bucket}/${prefix}`.replace(/\/$/, ''),
    get,
    async head(key) {
      const answer = await ask(client.send(new HeadObjectCommand(at(key))))
      return (
        answer && {
          sizeBytes: answer.ContentLength ?? 0,
          modifiedMs: answer.LastModified?.getTime() ?? 0,
          etag: answer.ETag ?? '',
        }
      )
    },
    async put(key, bytes, condition) {
      const answer = await ask(
        client.send(
          new PutObjectCommand({
            ...at(key),
            Body: bytes,
            ContentLength: bytes.length,
            ChecksumSHA256: createHash('sha256').update(bytes).digest('base64'),
            ...conditionOf(condition),
          }),
        ),
      )
      return answer && (answer.ETag ?? '')
    },
    async copy(from, to) {
      const source = `${bucket}/${encodeURIComponent(prefix + from).replaceAll('%2F', '/')}`
      return (await ask(client.send(new CopyObjectCommand({ ...at(to), CopySource: source })))) !== undefined
    },
    async remove(keys) {
      for (let i = 0; i < keys.length; i += DELETE_BATCH) {
        const Objects = keys.slice(i, i + DELETE_BATCH).map((key) => ({ Key: prefix + key }))
        const answer = await ask(
          client.send(new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects, Quiet: true } })),
        )
        const [first] = answer?.Errors ?? []
        if (first)
          throw failing({ name: first.Code, message: first.Message, $metadata: { httpStatusCode: 403 } })
      }
    },
    async *list(below) {
      let token: string | undefined
      do {
        const page: { Contents?: unknown; NextContinuationToken?: string | undefined } & Awaited<
          ReturnType<typeof listPage>
        > = await listPage(below, token)
        for (const object of page.Contents ?? []) {
          yield {
            key: (object.Key ?? '').slice(prefix.length),
            sizeBytes: object.Size ?? 0,
            modifiedMs: object.LastModified?.getTime() ?? 0,
            etag: object.ETag ?? '',
          }
        }
        token = page.NextContinuationToken
      } while (token)
    },
  }

  async function listPage(below: string, token: string | undefined) {
    try {
      return await client.send(
        new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix + below, ContinuationToken: token }),
      )
    } catch (error) {
      throw failing(error)
    }
  }
}

function conditionOf(condition: WriteCondition | undefined) {
  if (!condition) return {}
  return condition.type === 'absent' ? { IfNoneMatch: '*' } : { IfMatch: condition.etag }
}

/** A 404 of a HEAD has no body: whether the bucket is there shows in the next request that has one. */
function isAbsent(error: unknown): boolean {
  const name = (error as { name?: string } | null)?.name
  return name === 'NoSuchKey' || (statusOf(error) === 404 && name !== 'NoSuchBucket')
}

/** @throws RemoteError `timeout` for a body that stalls, an Error for one that ends early */
async function readWhole(body: AsyncIterable<Uint8Array>, size: number, idleMs: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(size)
  let at = 0
  const stream = body as AsyncIterable<Uint8Array> & { destroy?: (error: Error) => void }
  const stalled = () =>
    stream.destroy?.(new RemoteError('timeout', `no byte came for ${idleMs / 1000} s`, 'repeat it'))
  const watch = setTimeout(stalled, idleMs)
  try {
    for await (const chunk of body) {
      watch.refresh()
      if (at + chunk.length > size) throw new Error(`more than the ${size} bytes announced`)
      bytes.set(chunk, at)
      at += chunk.length
    }
  } finally {
    clearTimeout(watch)
  }
  if (at < size) throw Object.assign(new Error(`${at} of ${size} bytes came`), { code: 'ECONNRESET' })
  return bytes
}
