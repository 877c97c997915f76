// What the end of `podman run` or `docker run` says of the job inside. Pure but for the kernel's OOM counter.

import { constants } from 'node:os'
import type { Job, JobOutcome } from '../../model/ports.ts'
import { type OomWatch, toFailure, toStartFailure } from '../outcome.ts'
import { lastWord } from './runtime.ts'

type JobFailure = JobOutcome['failure']

/** The runtime's own failure; the command was never started, or could not be. */
const RUNTIME_CODES: readonly (number | undefined)[] = [125, 126, 127]
const RUNTIME_LINE = /^(?:Error: |docker: )/
/** How the runtime or the init says that there is no such command, or none that can be executed. */
const NO_COMMAND =
  /failed to exec pid1: (.*)|^\[FATAL tini.*\] exec .* failed: (.*)|^(?:Error: |docker: ).*\bexec: ".*?": (.*)/

/** True for a line on stderr that may tell why the runtime failed; the last such is handed to `toVerdict`. */
export function isRuntimeWord(line: string): boolean {
  return RUNTIME_LINE.test(line) || NO_COMMAND.test(line)
}

/** @param word the last line of stderr for which `isRuntimeWord` holds */
export function toVerdict(
  job: Job,
  outcome: JobOutcome,
  word: string | undefined,
  oom: OomWatch,
): JobFailure {
  const { failure, usage } = outcome
  if (failure?.class !== 'stage' && failure?.class !== 'signal') return failure
  const { exitCode } = failure
  if (exitCode === undefined)
    return { ...failure, class: 'infra', message: `the container runtime: ${failure.message}` }
  if (word !== undefined) {
    const isStartFault = exitCode === 1 || RUNTIME_CODES.includes(exitCode)
    const reason = NO_COMMAND.exec(word)?.slice(1).find(Boolean)
    if (reason && isStartFault) return toStartFailure(job, { code: codeOf(reason), message: reason })
    if (RUNTIME_CODES.includes(exitCode) && RUNTIME_LINE.test(word)) {
      return { class: 'infra', message: `the container could not be run: ${lastWord(word)}` }
    }
  }
  const signal = signalOf(exitCode)
  if (signal === undefined) return failure
  const about = { stopped: undefined, isOutOfMemory: oom.hasKilled }
  return toFailure(job, { exitCode: null, signal }, usage, about)
}

function codeOf(reason: string): string {
  if (/permission denied|is a directory/i.test(reason)) return 'EACCES'
  return /no such file|not found/i.test(reason) ? 'ENOENT' : ''
}

/** The init ends with 128 and the number of the signal that ended the command. */
function signalOf(exitCode: number): NodeJS.Signals | undefined {
  const found = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128)
  // The names of os.constants.signals are what NodeJS.Signals lists.
  return found?.[0] as NodeJS.Signals | undefined
}
