// The shape of an episode: the one source of the type and of the JSON Schema. The rules that name their breach are in check-*.ts;
// a test holds the two together.
import { z } from 'zod'
import { NOT_BLANK } from './identifier.ts'
import { isMutableRevision } from './revision.ts'
import { CONTEXT_ROLES, FINISH_REASONS, SCHEMA_VERSION, SOURCE_KINDS } from './words.ts'

/** Exact: `bigint` above 2^53 - 1, where a `number` would be rounded. */
const integer = z
  .union([z.number().refine((n) => Number.isInteger(n) && n >= 0), z.bigint().nonnegative()])
  .describe('Nonnegative integer of any size, written without fraction or exponent')

const finite = z.number().describe('Finite number')

const text = z.string().refine((s) => s.isWellFormed())
const identifier = text.regex(NOT_BLANK)
const revision = identifier
  .refine((s) => !isMutableRevision(s))
  .describe('Immutable revision: a commit or digest, never an alias such as main, latest or refs/heads/x')

const message = z.strictObject({ role: z.enum(CONTEXT_ROLES), content: text })

const call = z.strictObject({
  call_id: identifier.describe('Unique within the episode'),
  prompt_token_ids: z.array(integer).describe('Exact input token ids of this request'),
  response_token_ids: z.array(integer).describe('Exact sampled output token ids'),
  response_role: z.literal('assistant'),
  response_loss_mask: z
    .array(z.literal([0, 1]))
    .describe('Aligned to the response; 1 marks a trainable token'),
  finish_reason: z.enum(FINISH_REASONS),
  context: z.array(message).describe('Audit messages; never a substitute for the captured tokens'),
  behavior_logprobs: z
    .array(z.number().max(0))
    .exactOptional()
    .describe('Log probabilities of the response tokens, aligned to them'),
})

export const trajectory = z
  .strictObject({
    schema_version: z.literal(SCHEMA_VERSION),
    episode_id: identifier.describe('Unique within the file'),
    task_id: identifier,
    group_id: identifier.describe('Comparable rollouts of one task, policy, harness and scorer'),
    seed: integer,
    source_kind: z.enum(SOURCE_KINDS),
    policy: z.strictObject({
      model_id: identifier,
      revision,
      tokenizer_id: identifier,
      tokenizer_revision: revision,
      chat_template_sha256: z.string().regex(/^[0-9a-f]{64}$/),
    }),
    harness: z.strictObject({ name: identifier, version: identifier, revision }),
    reward: z.strictObject({ value: finite, scorer: identifier, scorer_revision: revision }),
    calls: z.array(call).min(1),
  })
  .describe('One scored episode: one row of a hessian.trajectory.v1 file')

/** One scored episode. */
export type Trajectory = z.infer<typeof trajectory>
/** One inference call of an episode. */
export type Call = Trajectory['calls'][number]

/** JSON Schema (2020-12) of one row. Rules across fields and rows - lengths, unique ids, groups - are beyond it. */
export function trajectorySchema(): Record<string, unknown> {
  return z.toJSONSchema(trajectory, {
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema !== integer) return
      delete jsonSchema.anyOf
      Object.assign(jsonSchema, { type: 'integer', minimum: 0 })
    },
  })
}
