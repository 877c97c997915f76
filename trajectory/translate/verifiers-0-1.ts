// Verifiers 0.1: results.jsonl with `trajectory` among the state columns, and the run's metadata.json.

import { z } from 'zod'
import { contextRole, contextText, type SourceCall, type SourceEpisode } from './episode.ts'
import { type LauncherInput, readLauncher } from './launcher.ts'
import { readSource } from './read-source.ts'
import { type Translation, toTranslation } from './to-rows.ts'

export const VERIFIERS_0_1_VERSIONS = ['0.1.14'] as const

const ids = z.array(z.int().nonnegative())
const bits = z.array(z.union([z.literal(0), z.literal(1)]))
const step = z.looseObject({
  trajectory_id: z.string(),
  prompt: z.array(z.looseObject({ role: z.string() })),
  response: z.looseObject({
    id: z.string(),
    model: z.string(),
    message: z.looseObject({ finish_reason: z.enum(['stop', 'length', 'tool_calls']) }),
  }),
  tokens: z.looseObject({
    prompt_ids: ids,
    prompt_mask: bits,
    completion_ids: ids,
    completion_mask: bits,
    completion_logprobs: z.array(z.number()).nullish(),
  }),
  extras: z.looseObject({ policy_version: z.union([z.int(), z.string()]).optional() }).optional(),
})
type Step = z.output<typeof step>
const results = z.array(
  z.looseObject({
    example_id: z.union([z.int(), z.string()]),
    reward: z.number().nullish(),
    error: z.unknown(),
    is_completed: z.boolean(),
    scorer: z.string().optional(),
    trajectory: z.array(step).min(1),
  }),
)
const metadata = z.looseObject({
  version_info: z.looseObject({ vf_version: z.enum(VERIFIERS_0_1_VERSIONS) }),
})

/** @param source `{ metadata, results }`: the run's two files. @throws TranslateError */
export function translateVerifiers01(source: unknown, launcher: LauncherInput): Translation {
  const known = readLauncher(launcher, VERIFIERS_0_1_VERSIONS)
  const read = readSource(z.looseObject({ metadata, results }), source)
  return toTranslation(
    read.results.map((result, index) => toEpisode(result, `$.results[${index}]`)),
    known,
  )
}

function toEpisode(result: z.output<typeof results>[number], path: string): SourceEpisode {
  const [first] = result.trajectory
  const rollout = first?.trajectory_id ?? ''
  const failure =
    result.error !== null && result.error !== undefined
      ? ({ kind: 'worker', message: JSON.stringify(result.error) } as const)
      : result.is_completed
        ? undefined
        : ({ kind: 'incomplete', message: 'the episode did not end' } as const)
  return {
    path,
    rollout,
    task: String(result.example_id),
    group: String(result.example_id),
    seed: undefined,
    modelId: first?.response.model,
    scorer: result.scorer,
    reward: result.reward ?? undefined,
    calls: result.trajectory.map((each, i) => toCall(each, `${path}.trajectory[${i}]`)),
    failure,
  }
}

function toCall({ tokens, ...each }: Step, path: string): SourceCall {
  // A trainable prompt token is an observation that would be trained.
  const hasTrainedPrompt = tokens.prompt_mask.some((bit) => bit === 1)
  return {
    path,
    rollout: each.trajectory_id,
    callId: each.response.id,
    prompt: tokens.prompt_ids,
    response: tokens.completion_ids,
    trainable: tokens.completion_mask,
    sampled: tokens.completion_ids.map(() => (hasTrainedPrompt ? 0 : 1)),
    logprobs: tokens.completion_logprobs ?? undefined,
    finishReason: each.response.message.finish_reason,
    context: each.prompt.map((said) => ({ role: contextRole(said.role), content: contextText(said) })),
    policyVersion: each.extras?.policy_version,
  }
}
