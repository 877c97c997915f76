// PilotError: what went wrong, whose fault it is, where, and what to do. The exit code follows from the blame.

/** Whose fault an error is: the user's input, the machine, the stage's own program, or pilot itself. */
export type Blame = 'user' | 'environment' | 'stage' | 'pilot'

/** Exit codes of the command, one a blame; the README lists them. */
export const EXIT_CODES = {
  ok: 0,
  stage: 1,
  user: 2,
  environment: 3,
  pilot: 4,
  /** 128 + SIGINT, as shells report it. */
  interrupted: 130,
} as const

export interface ErrorFacts {
  /** Stable, kebab-case name of the error: `output-missing`. */
  readonly code: string
  readonly blame: Blame
  /** One full sentence without the final full stop. */
  readonly what: string
  /** File and line, log, or URL. */
  readonly where?: string | undefined
  /** What to do now. */
  readonly hint?: string | undefined
  readonly cause?: unknown
}

export class PilotError extends Error {
  readonly code: string
  readonly blame: Blame
  readonly where: string | undefined
  readonly hint: string | undefined

  constructor(facts: ErrorFacts) {
    super(facts.what, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.name = 'PilotError'
    this.code = facts.code
    this.blame = facts.blame
    this.where = facts.where
    this.hint = facts.hint
  }

  get exitCode(): number {
    return EXIT_CODES[this.blame]
  }
}

/** The three-line text of an error, as the terminal shows it; the stack only where pilot itself is to blame. */
export function formatError(error: unknown): string {
  if (!(error instanceof PilotError)) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return `error[internal]: ${text}\n  hint    this is a fault in pilot: report it with the lines above`
  }
  const lines = [`error[${error.code}]: ${error.message}`]
  if (error.where) lines.push(`  where   ${error.where}`)
  const cause = causeOf(error)
  if (cause) lines.push(`  cause   ${cause}`)
  if (error.hint) lines.push(`  hint    ${error.hint}`)
  if (error.blame === 'pilot' && error.stack) lines.push(error.stack)
  return lines.join('\n')
}

function causeOf(error: Error): string | undefined {
  return error.cause instanceof Error ? error.cause.message : undefined
}

/** Marks the end of a switch over a union: the compiler refuses a forgotten member. */
export function assertNever(value: never): never {
  throw new TypeError(`unexpected ${JSON.stringify(value)}`)
}
