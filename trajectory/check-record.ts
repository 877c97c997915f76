// The rules of one episode, on a value that is already parsed. What needs the other episodes of a file is in file-rules.ts.
import { checkCall } from './check-call.ts'
import {
  type Check,
  checkArray,
  checkFinite,
  checkIdentifier,
  checkNonnegativeInteger,
  checkObject,
  checkRevision,
  checkSha256,
  fields,
  isObject,
  oneOf,
} from './check-value.ts'
import { describe, type Fault, type Report, TrajectoryError, toFault } from './fault.ts'
import type { Trajectory } from './schema.ts'
import { SCHEMA_VERSION, SOURCE_KINDS } from './words.ts'

const identifier: Check = (value, path, report) => void checkIdentifier(value, path, report)

const POLICY = fields({
  model_id: identifier,
  revision: checkRevision,
  tokenizer_id: identifier,
  tokenizer_revision: checkRevision,
  chat_template_sha256: checkSha256,
})
const HARNESS = fields({ name: identifier, version: identifier, revision: checkRevision })
const REWARD = fields({
  value: (value, path, report) => void checkFinite(value, path, report),
  scorer: identifier,
  scorer_revision: checkRevision,
})

export const checkPolicy: Check = (value, path, report) => checkObject(value, path, report, POLICY)
export const checkHarness: Check = (value, path, report) => checkObject(value, path, report, HARNESS)
export const checkReward: Check = (value, path, report) => checkObject(value, path, report, REWARD)

const checkCalls: Check = (value, path, report) => {
  const calls = checkArray(value, path, report)
  if (calls === undefined) return
  if (calls.length === 0) return report('calls.empty', path, '')
  const seen = new Set<unknown>()
  let trainable: number | undefined = 0
  for (const [index, call] of calls.entries()) {
    const ones = checkCall(call, `${path}[${index}]`, report)
    trainable = ones === undefined || trainable === undefined ? undefined : trainable + ones
    const id = isObject(call) ? call['call_id'] : undefined
    if (typeof id !== 'string') continue
    if (seen.has(id)) report('call_id.duplicate', `${path}[${index}].call_id`, describe(id))
    seen.add(id)
  }
  if (trainable === 0) report('mask.no_trainable', path, '')
}

const EPISODE = fields({
  schema_version: oneOf('schema_version', [SCHEMA_VERSION]),
  episode_id: identifier,
  task_id: identifier,
  group_id: identifier,
  seed: checkNonnegativeInteger,
  source_kind: oneOf('enum.source_kind', SOURCE_KINDS),
  policy: checkPolicy,
  harness: checkHarness,
  reward: checkReward,
  calls: checkCalls,
})

/** Reports every fault of one episode. */
export function checkRecord(value: unknown, report: Report): void {
  checkObject(value, '$', report, EPISODE)
}

/** Every fault of one record, in the order of the contract's fields; none: it is valid.
 *  @param line what to give as the line of the faults */
export function trajectoryFaults(record: unknown, line = 0): Fault[] {
  const faults: Fault[] = []
  checkRecord(record, (rule, path, found) => faults.push(toFault(rule, line, path, found)))
  return faults
}

/** Checks one parsed record and gives it back typed. Numbers are judged by value: a parser that lost `1.0` cannot be told.
 *  @throws TrajectoryError at the first fault */
export function validateTrajectory(record: unknown): Trajectory {
  const [fault] = trajectoryFaults(record)
  if (fault !== undefined) throw new TrajectoryError(fault)
  return record as Trajectory // every field was checked above
}

/** A report that only remembers whether there was anything to report. */
export function isSound(check: Check, value: unknown): boolean {
  let sound = true
  const report: Report = () => {
    sound = false
  }
  check(value, '$', report)
  return sound
}
