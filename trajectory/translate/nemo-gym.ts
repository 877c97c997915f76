// NeMo Gym: rows of `ng_collect_rollouts`. Output items with token ids are calls; tool outputs are observations, of which
// the next call's prompt ids hold the tokens. Prompt ids come from a /tokenize call of its own, not from the engine.

import { z } from 'zod'
import type { SourceCall, SourceEpisode } from './episode.ts'
import { type LauncherInput, readLauncher } from './launcher.ts'
import { readSource } from './read-source.ts'
import { type Translation, toTranslation } from './to-rows.ts'

export const NEMO_GYM_VERSIONS = ['0.4.0'] as const

const ids = z.array(z.int().nonnegative())
const item = z.looseObject({
  type: z.string().default('message'),
  role: z.string().optional(),
  id: z.string().nullish(),
  call_id: z.string().optional(),
  prompt_token_ids: ids.optional(),
  generation_token_ids: ids.optional(),
  generation_log_probs: z.array(z.number()).nullish(),
})
type Item = z.output<typeof item>
const rows = z.array(
  z.looseObject({
    _ng_task_index: z.int().nonnegative(),
    _ng_rollout_index: z.int().nonnegative(),
    reward: z.number().nullish(),
    agent_ref: z.looseObject({ name: z.string() }).optional(),
    verifier: z.string().optional(),
    /** Set by a launcher that records it. */
    policy_version: z.union([z.int(), z.string()]).optional(),
    response: z.looseObject({
      id: z.string(),
      model: z.string(),
      error: z.unknown(),
      incomplete_details: z.unknown(),
      metadata: z.looseObject({ extra_body: z.string().optional() }).nullish(),
      output: z.array(item),
    }),
  }),
)
type Row = z.output<typeof rows>[number]

/** @param source rows of the JSONL file. Episode ids are `<run>-<task>-<rollout>`. @throws TranslateError */
export function translateNemoGym(source: unknown, launcher: LauncherInput, run: string): Translation {
  const known = readLauncher(launcher, NEMO_GYM_VERSIONS)
  return toTranslation(
    readSource(rows, source).map((row, index) => toEpisode(row, `$[${index}]`, run)),
    known,
  )
}

function toEpisode(row: Row, path: string, run: string): SourceEpisode {
  const { response } = row
  const rollout = `${run}-${row._ng_task_index}-${row._ng_rollout_index}`
  const isFailed = response.error !== null && response.error !== undefined
  const isIncomplete = response.incomplete_details !== null && response.incomplete_details !== undefined
  return {
    path,
    rollout,
    task: `${run}-${row._ng_task_index}`,
    group: `${run}-${row._ng_task_index}`,
    seed: seedOf(response.metadata?.extra_body),
    modelId: response.model,
    scorer: row.verifier,
    reward: row.reward ?? undefined,
    calls: toCalls(row, path, rollout),
    failure: isFailed
      ? { kind: 'gateway', message: JSON.stringify(response.error) }
      : isIncomplete
        ? { kind: 'incomplete', message: JSON.stringify(response.incomplete_details) }
        : undefined,
  }
}

function toCalls({ response, policy_version }: Row, path: string, rollout: string): readonly SourceCall[] {
  const made = new Set(
    response.output.flatMap((each) => (each.type === 'function_call' ? (each.call_id ?? []) : [])),
  )
  // A tool output that answers no call of this episode came from another.
  const stray = response.output.find(
    (each) => each.type === 'function_call_output' && !made.has(each.call_id ?? ''),
  )
  const owner = stray ? `of call ${stray.call_id ?? 'without an id'}` : rollout
  const spoken = response.output
    .map((each, i) => ({ each, i }))
    .filter(({ each }) => each.generation_token_ids)
  return spoken.map(({ each, i }) => {
    const tokens = each.generation_token_ids ?? []
    const isSampled = each.type === 'function_call_output' ? 0 : 1
    return {
      path: `${path}.response.output[${i}]`,
      rollout: owner,
      callId: each.id ?? `${response.id}-${i}`,
      prompt: each.prompt_token_ids ?? [],
      response: tokens,
      trainable: tokens.map(() => 1),
      sampled: tokens.map(() => isSampled),
      logprobs: each.generation_log_probs ?? undefined,
      finishReason: each.type === 'function_call' ? 'tool_calls' : 'stop',
      context: response.output.slice(0, i).map(toMessage),
      policyVersion: policy_version,
    }
  })
}

function toMessage(each: Item): { readonly role: string; readonly content: string } {
  const {
    prompt_token_ids: _prompt,
    generation_token_ids: _tokens,
    generation_log_probs: _probs,
    ...said
  } = each
  return { role: each.type === 'function_call_output' ? 'tool' : 'assistant', content: JSON.stringify(said) }
}

function seedOf(extraBody: string | undefined): number | undefined {
  if (extraBody === undefined) return undefined
  const value: unknown = JSON.parse(extraBody)
  const seed = typeof value === 'object' && value !== null && 'seed' in value ? value.seed : undefined
  return typeof seed === 'number' ? seed : undefined
}
