// verl: dumps of AgentLoopOutput, one a rollout: prompt, then sampled and tool tokens in one response, told apart by
// `response_mask`. `num_turns` says how many turns there were, and so how many runs of sampled tokens there must be.

import { z } from 'zod'
import type { SourceCall, SourceEpisode } from './episode.ts'
import { type LauncherInput, readLauncher } from './launcher.ts'
import { readSource } from './read-source.ts'
import { runsOf } from './runs.ts'
import { type Translation, toTranslation } from './to-rows.ts'

export const VERL_VERSIONS = ['0.8.0'] as const

const ids = z.array(z.int().nonnegative())
const bits = z.array(z.union([z.literal(0), z.literal(1)]))
const step = z.int().nonnegative()
const outputs = z.array(
  z
    .looseObject({
      request_id: z.string(),
      uid: z.string().optional(),
      prompt_ids: ids,
      response_ids: ids,
      response_mask: bits,
      response_logprobs: z.array(z.number()).nullish(),
      /** Prompt, sampled and tool turns together. */
      num_turns: z.int().min(2),
      reward_score: z.number().nullish(),
      error: z.string().nullish(),
      extra_fields: z.looseObject({
        request_id: z.string().optional(),
        min_global_steps: step.optional(),
        max_global_steps: step.optional(),
        scorer: z.string().optional(),
        model: z.string().optional(),
        is_truncated: z.boolean().optional(),
      }),
    })
    .refine(
      (output) => output.response_ids.length === output.response_mask.length,
      'response_mask is not aligned',
    ),
)
type Output = z.output<typeof outputs>[number]

/** @param source `[AgentLoopOutput]` as JSON. @throws TranslateError */
export function translateVerl(source: unknown, launcher: LauncherInput): Translation {
  const known = readLauncher(launcher, VERL_VERSIONS)
  return toTranslation(
    readSource(outputs, source).map((output, index) => toEpisode(output, `$[${index}]`)),
    known,
  )
}

function toEpisode(output: Output, path: string): SourceEpisode {
  const { extra_fields: extra } = output
  return {
    path,
    rollout: output.request_id,
    task: undefined,
    group: output.uid,
    seed: undefined,
    modelId: extra.model,
    scorer: extra.scorer,
    reward: output.reward_score ?? undefined,
    calls: toCalls(output, path),
    failure: output.error ? { kind: 'worker', message: output.error } : undefined,
  }
}

function toCalls(output: Output, path: string): readonly SourceCall[] {
  const runs = runsOf(output.response_mask)
  // Turns go round: asked, answered, observed, answered. Fewer runs than answers: one of them holds an observation.
  const hasMerged = runs.length < Math.floor(output.num_turns / 2)
  return runs.map(({ start, end }, i) => ({
    path: `${path}.response_mask[${start}]`,
    rollout: output.extra_fields.request_id ?? output.request_id,
    callId: `${output.request_id}-${i}`,
    prompt: [...output.prompt_ids, ...output.response_ids.slice(0, start)],
    response: output.response_ids.slice(start, end),
    trainable: output.response_mask.slice(start, end),
    sampled: output.response_mask.slice(start, end).map((bit, at) => (hasMerged && at > 0 ? 0 : bit)),
    logprobs: output.response_logprobs?.slice(start, end),
    finishReason: finishOf(i, runs.length, output.extra_fields.is_truncated ?? false),
    context: [],
    policyVersion: versionOf(output),
  }))
}

function finishOf(index: number, count: number, isTruncated: boolean): SourceCall['finishReason'] {
  if (index < count - 1) return 'tool_calls'
  return isTruncated ? 'length' : 'stop'
}

/** Only a rollout that began and ended under one version has one. */
function versionOf({
  extra_fields: { min_global_steps: min, max_global_steps: max },
}: Output): number | string | undefined {
  if (min === undefined || max === undefined) return undefined
  return min === max ? min : `${min} to ${max}`
}
