// Agent Lightning: raw rollouts with their `model_request` and `reward` events, as the gateway's API gives them.
// Not its triplets: those drop earlier requests with equal prompts.

import { z } from 'zod'
import {
  contextRole,
  contextText,
  type SourceCall,
  type SourceEpisode,
  type SourceFailure,
} from './episode.ts'
import { type LauncherInput, readLauncher } from './launcher.ts'
import { readSource } from './read-source.ts'
import { type Translation, toTranslation } from './to-rows.ts'

export const AGENT_LIGHTNING_VERSIONS = ['1.0.2'] as const

const id = z.array(z.int().nonnegative())
const message = z.looseObject({ role: z.string(), content: z.unknown() })
const request = z.looseObject({
  model: z.string(),
  model_version: z.union([z.int(), z.string()]).nullish(),
  status: z.string(),
  request: z.looseObject({ messages: z.array(message), seed: z.int().nonnegative().optional() }),
  response: z.unknown(),
})
const response = z.looseObject({
  id: z.string(),
  prompt_token_ids: id,
  choices: z
    .array(
      z.looseObject({
        message: z.looseObject({ role: z.string() }),
        finish_reason: z.enum(['stop', 'length', 'tool_calls']),
        token_ids: id,
        logprobs: z.looseObject({ content: z.array(z.looseObject({ logprob: z.number() })) }).nullish(),
      }),
    )
    .length(1),
})
const event = z.looseObject({ event_type: z.string(), rollout_id: z.string(), data: z.looseObject({}) })
const rollouts = z.array(
  z.looseObject({
    rollout: z.looseObject({
      rollout_id: z.string(),
      metadata: z.looseObject({ group_id: z.string().optional(), task_id: z.string().optional() }).nullish(),
      input: z.unknown(),
      status: z.looseObject({ state: z.string(), error_message: z.string().nullish() }),
    }),
    events: z.array(event),
  }),
)
const reward = z.looseObject({ value: z.number(), scorer: z.string().optional() })

/** @param source `[{ rollout, events }]`: for each rollout what `/api/rollouts/{id}` and its `/events` give.
 *  @throws TranslateError */
export function translateAgentLightning(source: unknown, launcher: LauncherInput): Translation {
  const known = readLauncher(launcher, AGENT_LIGHTNING_VERSIONS)
  const episodes = readSource(rollouts, source).map((item, index) => toEpisode(item, `$[${index}]`))
  return toTranslation(episodes, known)
}

type Item = z.output<typeof rollouts>[number]

function toEpisode({ rollout, events }: Item, path: string): SourceEpisode {
  const calls = events.flatMap((each, i) => toCall(each, `${path}.events[${i}]`) ?? [])
  const last = events.findLast((each) => each.event_type === 'reward')
  const rewarded = last && readSource(reward, last.data)
  const input = rollout.input
  const task =
    typeof input === 'object' && input !== null && 'data_id' in input ? String(input.data_id) : undefined
  const seeds = events.flatMap((each) =>
    each.event_type === 'model_request' ? (seedOf(each.data) ?? []) : [],
  )
  return {
    path,
    rollout: rollout.rollout_id,
    task: rollout.metadata?.task_id ?? task,
    group: rollout.metadata?.group_id,
    seed: seeds[0],
    modelId: events.flatMap((each) => modelOf(each.data) ?? [])[0],
    scorer: rewarded?.scorer,
    reward: rewarded?.value,
    calls,
    failure: toFailure(rollout.status, events),
  }
}

function toFailure(status: Item['rollout']['status'], events: Item['events']): SourceFailure | undefined {
  const told = events.find((each) => each.event_type === 'episode_failure')
  if (told) {
    const kind = told.data['kind'] === 'tool' ? 'tool' : 'gateway'
    return { kind, message: String(told.data['message'] ?? '') }
  }
  if (events.some((each) => each.event_type === 'model_request' && each.data['status'] !== 'ok')) {
    return { kind: 'gateway', message: 'a model request failed' }
  }
  if (status.state === 'succeeded') return undefined
  if (status.state === 'failed') return { kind: 'worker', message: status.error_message ?? 'failed' }
  return { kind: 'incomplete', message: `the rollout is ${status.state}` }
}

function toCall(each: z.output<typeof event>, path: string): SourceCall | undefined {
  if (each.event_type !== 'model_request') return undefined
  const data = readSource(request, each.data)
  if (data.status !== 'ok') return undefined
  const answer = readSource(response, data.response)
  const [choice] = answer.choices
  if (!choice) return undefined
  const isSampled = choice.message.role === 'assistant' ? 1 : 0
  return {
    path,
    rollout: each.rollout_id,
    callId: answer.id,
    prompt: answer.prompt_token_ids,
    response: choice.token_ids,
    trainable: choice.token_ids.map(() => 1),
    sampled: choice.token_ids.map(() => isSampled),
    logprobs: choice.logprobs?.content.map(({ logprob }) => logprob),
    finishReason: choice.finish_reason,
    context: data.request.messages.map((said) => ({
      role: contextRole(said.role),
      content: contextText(said),
    })),
    policyVersion: data.model_version ?? undefined,
  }
}

function seedOf(data: Item['events'][number]['data']): number | undefined {
  return request.safeParse(data).data?.request.seed
}

function modelOf(data: Item['events'][number]['data']): string | undefined {
  return request.safeParse(data).data?.model
}
