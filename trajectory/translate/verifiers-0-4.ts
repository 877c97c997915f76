// Verifiers 0.4: one episode a line with its traces; a trace is a graph of nodes, and a call names the node it made.
// The prompt of a call is the tokens along the node's parents, and of the node itself what stands before its mask begins.

import { z } from 'zod'
import { contextRole, contextText, type SourceCall, type SourceEpisode } from './episode.ts'
import { type LauncherInput, readLauncher } from './launcher.ts'
import { readSource } from './read-source.ts'
import { type Translation, toTranslation } from './to-rows.ts'

export const VERIFIERS_0_4_VERSIONS = ['0.4.0'] as const

const node = z.looseObject({
  parent: z.int().nonnegative().optional(),
  sampled: z.boolean(),
  message: z.looseObject({ role: z.string() }),
  token_ids: z.array(z.int().nonnegative()),
  mask: z.array(z.boolean()),
  logprobs: z.array(z.number()),
})
const call = z.looseObject({
  node: z.int().nonnegative(),
  model: z.string(),
  finish_reason: z.enum(['stop', 'length', 'tool_calls']),
  sampling: z.looseObject({ seed: z.int().nonnegative().optional() }),
})
const task = z.looseObject({ key: z.string() })
const policy = z.looseObject({ start: z.union([z.int(), z.string()]), end: z.union([z.int(), z.string()]) })
const trace = z.looseObject({
  id: z.string(),
  verifiers: z.looseObject({ version: z.enum(VERIFIERS_0_4_VERSIONS) }),
  task,
  ok: z.boolean(),
  is_completed: z.boolean(),
  errors: z.array(z.unknown()),
  nodes: z.array(node),
  calls: z.array(call),
  rewards: z.record(z.string(), z.looseObject({ score: z.number().nullable(), weight: z.number() })),
})
type Trace = z.output<typeof trace>
const episodes = z.array(
  z.looseObject({
    id: z.string(),
    task,
    group: z.looseObject({ id: z.string() }).nullish(),
    run: z.looseObject({ work: z.looseObject({ policy: policy.optional() }).optional() }),
    traces: z.array(trace),
  }),
)
type Episode = z.output<typeof episodes>[number]

/** @param source lines of traces.jsonl. One episode holds several traces; each is a rollout. @throws TranslateError */
export function translateVerifiers04(source: unknown, launcher: LauncherInput): Translation {
  const known = readLauncher(launcher, VERIFIERS_0_4_VERSIONS)
  const read = readSource(episodes, source)
  return toTranslation(
    read.flatMap((episode, i) =>
      episode.traces.map((each, j) => toEpisode(episode, each, `$[${i}].traces[${j}]`)),
    ),
    known,
  )
}

function toEpisode(episode: Episode, each: Trace, path: string): SourceEpisode {
  const scores = Object.entries(each.rewards)
  const isScored = scores.length > 0 && scores.every(([, { score }]) => score !== null)
  const [first] = each.calls
  return {
    path,
    rollout: each.id,
    task: episode.task.key,
    group: episode.group?.id ?? episode.task.key,
    seed: first?.sampling.seed,
    modelId: first?.model,
    // The sum of several scorers is a scorer of its own.
    scorer: scores.length > 0 ? scores.map(([name]) => name).join('+') : undefined,
    reward: isScored
      ? scores.reduce((sum, [, { score, weight }]) => sum + (score ?? 0) * weight, 0)
      : undefined,
    calls: each.calls.flatMap((made, i) => toCall(episode, each, made, `${path}.calls[${i}]`)),
    failure:
      each.errors.length > 0 || !each.ok
        ? { kind: 'worker', message: JSON.stringify(each.errors) }
        : each.is_completed
          ? undefined
          : { kind: 'incomplete', message: 'the trace is not completed' },
  }
}

function toCall(
  episode: Episode,
  each: Trace,
  made: Trace['calls'][number],
  path: string,
): readonly SourceCall[] {
  const spoken = each.nodes[made.node]
  if (!spoken) return []
  const before = ancestorsOf(each, made.node)
  const begin = spoken.mask.indexOf(true)
  const start = begin < 0 ? spoken.token_ids.length : begin
  const response = spoken.token_ids.slice(start)
  const trained = before.some((other) => !other.sampled && other.mask.includes(true))
  const isSampled = spoken.sampled && !trained ? 1 : 0
  const version = episode.run.work?.policy
  return [
    {
      path,
      rollout: each.task.key === episode.task.key ? each.id : `of task ${each.task.key}`,
      callId: `${each.id}-${made.node}`,
      prompt: [...before.flatMap((other) => other.token_ids), ...spoken.token_ids.slice(0, start)],
      response,
      trainable: spoken.mask.slice(start).map((bit) => (bit ? 1 : 0)),
      sampled: response.map(() => isSampled),
      logprobs: spoken.logprobs.length > 0 ? spoken.logprobs : undefined,
      finishReason: made.finish_reason,
      context: before.map(({ message }) => ({
        role: contextRole(message.role),
        content: contextText(message),
      })),
      policyVersion:
        version && (version.start === version.end ? version.start : `${version.start} to ${version.end}`),
    },
  ]
}

/** From the root down to the node's parent. */
function ancestorsOf({ nodes }: Trace, index: number): readonly Trace['nodes'][number][] {
  const path: Trace['nodes'][number][] = []
  const seen = new Set<number>()
  for (let at = nodes[index]?.parent; at !== undefined && !seen.has(at); at = nodes[at]?.parent) {
    seen.add(at)
    const above = nodes[at]
    if (above) path.unshift(above)
  }
  return path
}
