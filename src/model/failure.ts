// Errors seen as failures of a stage, and what a failure means for the exit code.

import { type Blame, EXIT_CODES, PilotError } from './error.ts'
import type { Failure, FailureClass } from './result.ts'

/** What the engine found wrong with an attempt, as the failure that is reported and recorded. */
export function toFailure(error: unknown): Failure {
  if (error instanceof PilotError) return { class: classOf(error), message: error.message, hint: error.hint }
  if (isSystemError(error)) return { class: 'infra', message: error.message, hint: HINTS[error.code] }
  return { class: 'infra', message: error instanceof Error ? (error.stack ?? error.message) : String(error) }
}

/** What to do about what the system said. */
const HINTS: Readonly<Record<string, string>> = {
  ENOSPC: 'free some space, or let `pilot gc` do it',
  EDQUOT: 'free some space, or let `pilot gc` do it',
  EMFILE: 'raise the limit of open files: ulimit -n',
}

/** The system's refusals say all there is in one line; where in pilot they came up is of no use to anybody. */
function isSystemError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'code' in error && 'syscall' in error && typeof error.code === 'string'
}

function classOf(error: PilotError): FailureClass {
  if (error.code === 'output-missing') return 'missing-output'
  if (error.code === 'input-changed') return 'integrity'
  const byBlame: Record<Blame, FailureClass> = {
    user: 'stage',
    stage: 'stage',
    environment: 'infra',
    pilot: 'infra',
  }
  return byBlame[error.blame]
}

/** The machine is to blame for what the machine did; all else is the stage's own. */
export function exitCodeOf(failure: Failure): number {
  switch (failure.class) {
    case 'preempted':
    case 'infra':
    case 'integrity':
      return EXIT_CODES.environment
    case 'cancelled':
      return EXIT_CODES.interrupted
    default:
      return EXIT_CODES.stage
  }
}

/** Failures that a further attempt may well mend: the machine went away, not the program. */
export function isTransient(failure: Failure): boolean {
  return failure.class === 'preempted' || failure.class === 'infra'
}
