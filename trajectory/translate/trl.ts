// TRL: a GRPO batch as `_generate_and_score_completions` holds it. Trainable is completion_mask AND tool_mask: the
// completion mask alone is 1 on tool tokens too. The batch knows no identity; the launcher gives it, row by row.

import { z } from 'zod'
import type { SourceCall, SourceEpisode } from './episode.ts'
import { type Launcher, type LauncherInput, readLauncher } from './launcher.ts'
import { readSource } from './read-source.ts'
import { runsOf } from './runs.ts'
import { type Translation, toTranslation } from './to-rows.ts'
import { TranslateError } from './translate-error.ts'

export const TRL_VERSIONS = ['1.16.0'] as const

const ids = z.array(z.array(z.int().nonnegative()))
const bits = z.array(z.array(z.union([z.literal(0), z.literal(1)])))
const batch = z.looseObject({
  prompt_ids: ids,
  prompt_mask: bits,
  completion_ids: ids,
  completion_mask: bits,
  /** 1 where the policy sampled, 0 where a tool spoke. */
  tool_mask: bits.optional(),
  sampling_per_token_logps: z.array(z.array(z.number())).nullish(),
})
type Batch = z.output<typeof batch>

/** @param source one batch. @param rollouts id of each row of the batch, keys of `launcher.episodes`.
 *  @throws TranslateError */
export function translateTrl(
  source: unknown,
  launcher: LauncherInput,
  rollouts: readonly string[] = Object.keys(launcher.episodes ?? {}),
): Translation {
  const known = readLauncher(launcher, TRL_VERSIONS)
  const read = readSource(batch, source)
  checkRows(read, rollouts)
  const episodes = read.completion_ids.map((_, row) => toEpisode(read, row, rollouts))
  checkPrompts(read, rollouts, known)
  return toTranslation(episodes, known)
}

function checkRows(read: Batch, rollouts: readonly string[]): void {
  const rows = read.completion_ids.length
  const counts = [rollouts, read.prompt_ids, read.prompt_mask, read.completion_mask].map(
    (list) => list.length,
  )
  if (counts.every((count) => count === rows)) return
  throw new TranslateError([
    {
      rule: 'launcher-field',
      rollout: null,
      path: '$launcher.episodes',
      message: `the batch has ${rows} rows, its masks and the launcher's episodes ${counts.join(', ')}`,
    },
  ])
}

/** Rows of one group answer one prompt: a row of another is not of this group. */
function checkPrompts(read: Batch, rollouts: readonly string[], { episodes }: Launcher): void {
  const leads = new Map<string, string>()
  rollouts.forEach((rollout, row) => {
    const group = episodes[rollout]?.group
    if (group === undefined) return
    const prompt = JSON.stringify(masked(read.prompt_ids[row], read.prompt_mask[row]))
    const lead = leads.get(group) ?? prompt
    leads.set(group, lead)
    if (lead !== prompt) {
      throw new TranslateError([
        {
          rule: 'foreign-event',
          rollout,
          path: `$.prompt_ids[${row}]`,
          message: `the prompt is not that of the other rows of group ${group}`,
        },
      ])
    }
  })
}

function toEpisode(read: Batch, row: number, rollouts: readonly string[]): SourceEpisode {
  const rollout = rollouts[row] ?? ''
  return {
    path: `$.completion_ids[${row}]`,
    rollout,
    task: undefined,
    group: undefined,
    seed: undefined,
    modelId: undefined,
    scorer: undefined,
    reward: undefined,
    calls: toCalls(read, row, rollout),
    failure: undefined,
  }
}

function toCalls(read: Batch, row: number, rollout: string): readonly SourceCall[] {
  const prompt = masked(read.prompt_ids[row], read.prompt_mask[row])
  const completion = masked(read.completion_ids[row], read.completion_mask[row])
  const length = completion.length
  // Without a tool mask nothing tells an observation from a sampled token: none is known to be sampled.
  const sampled = read.tool_mask?.[row]?.slice(0, length) ?? completion.map(() => 0)
  const trainable = read.tool_mask ? sampled : completion.map(() => 1)
  const runs = runsOf(trainable)
  return runs.map(({ start, end }, i) => ({
    path: `$.completion_ids[${row}][${start}]`,
    rollout,
    callId: `${rollout}-${i}`,
    prompt: [...prompt, ...completion.slice(0, start)],
    response: completion.slice(start, end),
    trainable: trainable.slice(start, end),
    sampled: sampled.slice(start, end),
    logprobs: read.sampling_per_token_logps?.[row]?.slice(start, end),
    finishReason: i < runs.length - 1 ? 'tool_calls' : 'stop',
    context: [],
    policyVersion: undefined,
  }))
}

function masked(values: readonly number[] = [], mask: readonly number[] = []): readonly number[] {
  return values.filter((_, i) => mask[i] === 1)
}
