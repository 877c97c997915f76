// The rules of one inference call: aligned lists, roles, finish reason, audit context.
import {
  type Check,
  checkArray,
  checkFinite,
  checkIdentifier,
  checkNonnegativeInteger,
  checkObject,
  checkText,
  fields,
  isObject,
  oneOf,
} from './check-value.ts'
import { describe, type Report } from './fault.ts'
import { BROKEN } from './json-value.ts'
import { CONTEXT_ROLES, FINISH_REASONS } from './words.ts'

const checkTokens: Check = (value, path, report) => {
  const items = checkArray(value, path, report)
  eachItem(items, (item, index) => {
    // The path is only built for a fault: lists are long.
    if (!isTokenId(item)) checkNonnegativeInteger(item, `${path}[${index}]`, report)
  })
}

const checkMask: Check = (value, path, report) => {
  const items = checkArray(value, path, report)
  eachItem(items, (item, index) => {
    if (isMaskBit(item) || item === BROKEN) return
    const isNonfinite = typeof item === 'number' && !Number.isFinite(item)
    report(isNonfinite ? 'json.nonfinite' : 'mask.value', `${path}[${index}]`, describe(item))
  })
}

const checkLogprobs: Check = (value, path, report) => {
  const items = checkArray(value, path, report)
  eachItem(items, (item, index) => {
    const at = `${path}[${index}]`
    const number = checkFinite(item, at, report)
    if (number !== undefined && number > 0) report('logprob.positive', at, describe(item))
  })
}

const MESSAGE = fields({
  role: oneOf('role.context', CONTEXT_ROLES),
  content: (value, path, report) => void checkText(value, path, report),
})

const checkContext: Check = (value, path, report) => {
  const items = checkArray(value, path, report)
  eachItem(items, (item, index) => {
    checkObject(item, `${path}[${index}]`, report, MESSAGE)
  })
}

const CALL = fields(
  {
    call_id: (value, path, report) => void checkIdentifier(value, path, report),
    prompt_token_ids: checkTokens,
    response_token_ids: checkTokens,
    response_role: oneOf('role.response', ['assistant']),
    response_loss_mask: checkMask,
    finish_reason: oneOf('enum.finish_reason', FINISH_REASONS),
    context: checkContext,
    behavior_logprobs: checkLogprobs,
  },
  'behavior_logprobs',
)

/** Checks one call.
 *  @returns the number of trainable tokens, undefined where faults leave it open. */
export function checkCall(value: unknown, path: string, report: Report): number | undefined {
  checkObject(value, path, report, CALL)
  if (!isObject(value)) return undefined
  const { response_token_ids: response, response_loss_mask: mask, behavior_logprobs: logprobs } = value
  if (!Array.isArray(response)) return undefined
  const isAligned = hasLengthOf(response, mask)
  if (!isAligned && Array.isArray(mask)) {
    report(
      'mask.length',
      `${path}.response_loss_mask`,
      `${mask.length} for ${response.length} response tokens`,
    )
  }
  if (Array.isArray(logprobs) && !hasLengthOf(response, logprobs)) {
    report(
      'logprob.length',
      `${path}.behavior_logprobs`,
      `${logprobs.length} for ${response.length} response tokens`,
    )
  }
  return isAligned && Array.isArray(mask) && mask.every(isMaskBit) ? countOnes(mask) : undefined
}

function hasLengthOf(response: readonly unknown[], list: unknown): boolean {
  return Array.isArray(list) && list.length === response.length
}

function countOnes(mask: readonly unknown[]): number {
  let ones = 0
  for (const bit of mask) if (bit === 1 || bit === 1n) ones++
  return ones
}

function isTokenId(item: unknown): boolean {
  return typeof item === 'number' && Number.isInteger(item) && item >= 0
}

function isMaskBit(item: unknown): boolean {
  return item === 0 || item === 1 || item === 0n || item === 1n
}

/** Holes of a sparse array, which only a program can make, come as undefined: no rule takes that for a value. */
function eachItem(items: readonly unknown[] | undefined, act: (item: unknown, index: number) => void): void {
  if (items === undefined) return
  for (let index = 0; index < items.length; index++) act(items[index], index)
}
