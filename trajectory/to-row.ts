// An episode as one row of a file. Only for records that passed the rules.
import type { Call, Trajectory } from './schema.ts'

/** One line of JSON without its line feed: the fields of the contract in its order, integers exact, -0.0 kept where it is a real. */
export function toRow(record: Trajectory): string {
  const { policy, harness, reward } = record
  return object([
    ['schema_version', text(record.schema_version)],
    ['episode_id', text(record.episode_id)],
    ['task_id', text(record.task_id)],
    ['group_id', text(record.group_id)],
    ['seed', integer(record.seed)],
    ['source_kind', text(record.source_kind)],
    [
      'policy',
      object([
        ['model_id', text(policy.model_id)],
        ['revision', text(policy.revision)],
        ['tokenizer_id', text(policy.tokenizer_id)],
        ['tokenizer_revision', text(policy.tokenizer_revision)],
        ['chat_template_sha256', text(policy.chat_template_sha256)],
      ]),
    ],
    [
      'harness',
      object([
        ['name', text(harness.name)],
        ['version', text(harness.version)],
        ['revision', text(harness.revision)],
      ]),
    ],
    [
      'reward',
      object([
        ['value', real(reward.value)],
        ['scorer', text(reward.scorer)],
        ['scorer_revision', text(reward.scorer_revision)],
      ]),
    ],
    ['calls', list(record.calls, toCall)],
  ])
}

function toCall(call: Call): string {
  const { behavior_logprobs: logprobs } = call
  const pairs: [string, string][] = [
    ['call_id', text(call.call_id)],
    ['prompt_token_ids', list(call.prompt_token_ids, integer)],
    ['response_token_ids', list(call.response_token_ids, integer)],
    ['response_role', text(call.response_role)],
    ['response_loss_mask', list(call.response_loss_mask, integer)],
    ['finish_reason', text(call.finish_reason)],
    [
      'context',
      list(call.context, (m) =>
        object([
          ['role', text(m.role)],
          ['content', text(m.content)],
        ]),
      ),
    ],
  ]
  if (logprobs !== undefined) pairs.push(['behavior_logprobs', list(logprobs, real)])
  return object(pairs)
}

function object(pairs: readonly (readonly [key: string, json: string])[]): string {
  return `{${pairs.map(([key, json]) => `"${key}":${json}`).join(',')}}`
}

function list<T>(items: readonly T[], toJson: (item: T) => string): string {
  return `[${items.map((item) => toJson(item)).join(',')}]`
}

/** Line separators that other readers would split a row at are escaped. */
function text(value: string): string {
  return JSON.stringify(value).replace(
    /[\x85\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Without exponent, however large; -0 is 0. */
function integer(value: number | bigint): string {
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return String(value)
  return BigInt(value).toString()
}

/** A bigint is met here where a caller gave one for a reward. */
function real(value: number | bigint): string {
  if (typeof value === 'bigint') return String(value)
  return Object.is(value, -0) ? '-0.0' : JSON.stringify(value)
}
