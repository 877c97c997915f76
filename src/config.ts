// Flags and environment -> Config. The only reader of process.env.

import { availableParallelism, totalmem } from 'node:os'
import { PilotError } from './model/error.ts'
import type { Selection } from './plan/select.ts'

export interface Config {
  /** Where the command was started. */
  readonly cwd: string
  readonly recipe: string | undefined
  readonly selection: Selection
  /** Stages executed at the same time, at most. */
  readonly jobs: number
  readonly keepGoing: boolean
  /** The host's environment: what stages declare is taken from it, nothing else. */
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly cpus: number
  readonly memoryMiB: number
  readonly remote: RemoteConfig
}

/** The store beyond this machine. */
export interface RemoteConfig {
  /** `s3://…`, `actions-cache`, or undefined where the pipeline may name one. */
  readonly address: string | undefined
  readonly mode: 'off' | 'read' | 'read-write'
  /** Look-ups ask it alone. */
  readonly isOnly: boolean
  /** Untrusted runs read both namespaces and write their own. */
  readonly trust: 'trusted' | 'untrusted'
  /** Path of an Ed25519 private key, PEM. */
  readonly signingKey: string | undefined
  /** Path of the policy that says whose results are accepted. */
  readonly policy: string | undefined
  /** Who vouches for what is signed here: a URI. */
  readonly builder: string | undefined
  readonly beatMs: number
}

export interface Flags {
  readonly recipe?: string | undefined
  readonly to?: readonly string[] | undefined
  readonly from?: readonly string[] | undefined
  readonly only?: readonly string[] | undefined
  readonly force?: readonly string[] | undefined
  readonly jobs?: string | undefined
  readonly keepGoing?: boolean | undefined
  /** False with --no-remote. */
  readonly remote?: boolean | undefined
  readonly remoteOnly?: boolean | undefined
  readonly readOnly?: boolean | undefined
}

/** @param stages positional stage names: as `--to`. @throws PilotError `invalid-flag` */
export function readConfig(flags: Flags, stages: readonly string[] = []): Config {
  const environment = process.env
  const cpus = availableParallelism()
  return {
    cwd: process.cwd(),
    recipe: flags.recipe ?? (environment['PILOT_RECIPE'] || undefined),
    selection: {
      to: [...stages, ...(flags.to ?? [])],
      from: flags.from ?? [],
      only: flags.only ?? [],
      force: flags.force ?? [],
    },
    jobs: readJobs(flags.jobs ?? (environment['PILOT_JOBS'] || undefined)) ?? cpus,
    keepGoing: flags.keepGoing ?? false,
    environment,
    cpus,
    memoryMiB: Math.floor(totalmem() / 2 ** 20),
    remote: readRemote(flags, environment),
  }
}

/** How often the holder of a lease says that it lives; it is taken over after three missed ones. */
const BEAT_MS = 5_000

function readRemote(flags: Flags, environment: Config['environment']): RemoteConfig {
  const asked = environment['PILOT_STORE_MODE'] || 'read-write'
  if (asked !== 'off' && asked !== 'read' && asked !== 'read-write') {
    throw invalid(`PILOT_STORE_MODE is "${asked}"`, 'off, read or read-write')
  }
  const trust = environment['PILOT_TRUST'] || (isPullRequest(environment) ? 'untrusted' : 'trusted')
  if (trust !== 'trusted' && trust !== 'untrusted') {
    throw invalid(`PILOT_TRUST is "${trust}"`, 'trusted or untrusted')
  }
  const beatMs = Number(environment['PILOT_LEASE_BEAT_MS'] || BEAT_MS)
  if (!(beatMs >= 50)) throw invalid('PILOT_LEASE_BEAT_MS is no time in ms', 'a number from 50 on')
  if (flags.remote === false && flags.remoteOnly) {
    throw invalid('--no-remote and --remote-only exclude each other', 'give one of them')
  }
  return {
    address: environment['PILOT_STORE'] || undefined,
    mode: flags.remote === false ? 'off' : flags.readOnly && asked !== 'off' ? 'read' : asked,
    isOnly: flags.remoteOnly ?? false,
    trust,
    signingKey: environment['PILOT_SIGNING_KEY'] || undefined,
    policy: environment['PILOT_TRUST_POLICY'] || undefined,
    builder: environment['PILOT_BUILDER'] || undefined,
    beatMs,
  }
}

/** What a pull request made is not trusted, whoever opened it. */
function isPullRequest(environment: Config['environment']): boolean {
  return environment['GITHUB_EVENT_NAME']?.startsWith('pull_request') ?? false
}

/** What the terminal can show. */
export interface Terminal {
  readonly isInteractive: boolean
  readonly hasColor: boolean
}

const MIN_COLUMNS = 20

/** A live view needs a terminal, and is of no use in CI logs. NO_COLOR and FORCE_COLOR as everywhere. */
export function readTerminal(): Terminal {
  const { CI, NO_COLOR, FORCE_COLOR, TERM } = process.env
  const isTty = process.stdout.isTTY === true
  const isDumb = TERM === 'dumb'
  // A terminal that says it has no columns cannot show a view that is drawn again and again.
  const columns = process.stdout.columns || 0
  return {
    isInteractive: isTty && !isDumb && !CI && columns >= MIN_COLUMNS,
    hasColor: FORCE_COLOR ? FORCE_COLOR !== '0' : !NO_COLOR && isTty && !isDumb,
  }
}

function readJobs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const jobs = Number(text)
  if (Number.isInteger(jobs) && jobs > 0) return jobs
  throw invalid(`--jobs is "${text}"`, 'a whole number above 0')
}

function invalid(what: string, hint: string): PilotError {
  return new PilotError({ code: 'invalid-flag', blame: 'user', what, hint })
}
