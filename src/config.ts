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
}

export interface Flags {
  readonly recipe?: string | undefined
  readonly to?: readonly string[] | undefined
  readonly from?: readonly string[] | undefined
  readonly only?: readonly string[] | undefined
  readonly force?: readonly string[] | undefined
  readonly jobs?: string | undefined
  readonly keepGoing?: boolean | undefined
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
  }
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
  throw new PilotError({
    code: 'invalid-flag',
    blame: 'user',
    what: `--jobs is "${text}"`,
    hint: 'a whole number above 0',
  })
}
