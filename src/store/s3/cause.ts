// What the SDK throws -> why the store does not answer, in words, with the mend.

import { type RemoteCause, RemoteError } from '../remote/objects.ts'
import type { S3Address } from './address.ts'

interface Facts {
  readonly name: string
  readonly status: number | undefined
  readonly code: string | undefined
  readonly message: string
}

const CLOCK: ReadonlySet<string> = new Set(['RequestTimeTooSkewed', 'RequestExpired', 'ExpiredToken'])
const REGION: ReadonlySet<string> = new Set([
  'PermanentRedirect',
  'AuthorizationHeaderMalformed',
  'IllegalLocationConstraintException',
])
const THROTTLED: ReadonlySet<string> = new Set([
  'SlowDown',
  'TooManyRequestsException',
  'RequestLimitExceeded',
])
const TIMEOUTS: ReadonlySet<string> = new Set(['TimeoutError', 'RequestTimeout', 'ETIMEDOUT', 'StallError'])
const NETWORK: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ECONNRESET',
  'EPIPE',
])

/** @param error whatever a call of the SDK threw */
export function toRemoteError(error: unknown, { bucket, endpoint }: S3Address): RemoteError {
  if (error instanceof RemoteError) return error
  const facts = factsOf(error)
  const reason = reasonOf(facts)
  const [what, hint] = words(reason, bucket, endpoint)
  return new RemoteError(reason, `${what} (${facts.message})`, hint, error)
}

export function statusOf(error: unknown): number | undefined {
  return factsOf(error).status
}

function factsOf(error: unknown): Facts {
  const raw = error as {
    name?: string
    code?: string
    message?: string
    $metadata?: { httpStatusCode?: number }
  } | null
  const status = raw?.$metadata?.httpStatusCode
  const text = raw?.message && raw.message !== 'UnknownError' ? raw.message : ''
  const message = text || [raw?.name ?? String(error), status].filter(Boolean).join(' ')
  return { name: raw?.name ?? '', status, code: raw?.code, message: message.split('\n')[0] ?? '' }
}

function reasonOf({ name, status, code = '', message }: Facts): RemoteCause {
  if (name === 'CredentialsProviderError' || /could not load credentials/i.test(message))
    return 'no-credentials'
  if (CLOCK.has(name)) return 'clock-skew'
  if (REGION.has(name) || status === 301) return 'wrong-region'
  if (name === 'NoSuchBucket') return 'no-bucket'
  if (THROTTLED.has(name) || status === 429) return 'throttled'
  if (TIMEOUTS.has(name) || TIMEOUTS.has(code)) return 'timeout'
  if (NETWORK.has(code) || NETWORK.has(name)) return 'unreachable'
  if (status === 401 || status === 403) return 'forbidden'
  if (status === 404) return 'no-bucket'
  return status === undefined ? 'unreachable' : 'server'
}

function words(reason: RemoteCause, bucket: string, endpoint = 'the S3 service'): readonly [string, string] {
  switch (reason) {
    case 'no-credentials':
      return [
        'there are no credentials for it',
        'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE',
      ]
    case 'forbidden':
      return ['access is refused', `check the credentials and their rights on the bucket "${bucket}"`]
    case 'no-bucket':
      return [`there is no bucket "${bucket}"`, 'make it, or correct its name in the address of the store']
    case 'wrong-region':
      return [`the bucket "${bucket}" is in another region`, 'name it: s3://bucket/prefix?region=…']
    case 'clock-skew':
      return [
        'the clock of this machine differs from that of the service',
        'set the clock (NTP), or renew the token',
      ]
    case 'throttled':
      return [
        'the service asks for fewer requests',
        'wait a little and repeat: what was sent is not sent again',
      ]
    case 'timeout':
      return ['it stopped answering', 'repeat it: what was sent is not sent again']
    case 'unreachable':
      return [`${endpoint} cannot be reached`, 'check the network, the endpoint and the proxy settings']
    case 'server':
      return ['the service answers with an error', 'repeat it later']
  }
}
