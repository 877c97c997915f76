// `s3://bucket/prefix?region=…&endpoint=…` -> where objects are kept. Pure.

import { PilotError } from '../../model/error.ts'

export interface S3Address {
  readonly bucket: string
  /** Ends with a slash where it is not empty. */
  readonly prefix: string
  readonly region: string | undefined
  readonly endpoint: string | undefined
}

const PARAMETERS: ReadonlySet<string> = new Set(['region', 'endpoint'])

/** @throws PilotError `invalid-store` */
export function parseS3Address(text: string): S3Address {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 's3:' || url.hostname === '') throw refuse(text, 'is no S3 address')
  if (url.username !== '' || url.password !== '')
    throw refuse(text.replace(/\/\/[^@]*@/, '//…@'), 'holds credentials')
  for (const name of url.searchParams.keys()) {
    if (!PARAMETERS.has(name)) throw refuse(text, `has an unknown parameter "${name}"`)
  }
  const endpoint = url.searchParams.get('endpoint') ?? undefined
  if (endpoint !== undefined && !/^https?:\/\/[^/]/.test(endpoint)) {
    throw refuse(text, `has the endpoint "${endpoint}", which is no http or https address`)
  }
  const prefix = decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, '')
  return {
    bucket: url.hostname,
    prefix: prefix === '' ? '' : `${prefix}/`,
    region: url.searchParams.get('region') ?? undefined,
    endpoint,
  }
}

function refuse(text: string, how: string): PilotError {
  return new PilotError({
    code: 'invalid-store',
    blame: 'user',
    what: `the store "${text}" ${how}`,
    where: 'PILOT_STORE, or `store` of the pipeline',
    hint: 'as in s3://bucket/prefix?region=eu-central-1&endpoint=https://s3.example.org; credentials come from the environment or ~/.aws',
  })
}
