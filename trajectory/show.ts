// Episodes and figures as text for people.
import { toPrintable } from './fault.ts'
import type { Call, Trajectory } from './schema.ts'
import type { TrajectoryStats } from './stats.ts'

const SHOWN_TOKENS = 16

/** One episode: its identity, then each call with its context and the two ends of its token lists. */
export function formatEpisode(episode: Trajectory): string {
  const { policy, harness, reward } = episode
  return lines([
    row(
      'episode',
      `${episode.episode_id}  task ${episode.task_id}  group ${episode.group_id}  seed ${episode.seed}`,
    ),
    row('source', episode.source_kind),
    row('policy', `${policy.model_id} @ ${policy.revision}`),
    row('tokenizer', `${policy.tokenizer_id} @ ${policy.tokenizer_revision}`),
    row('template', policy.chat_template_sha256),
    row('harness', `${harness.name} ${harness.version} @ ${harness.revision}`),
    row('reward', `${reward.value} by ${reward.scorer} @ ${reward.scorer_revision}`),
    ...episode.calls.flatMap((call, index) => callLines(call, index)),
  ])
}

function callLines(call: Call, index: number): string[] {
  const trainable = call.response_loss_mask.reduce((sum: number, bit) => sum + bit, 0)
  const logprobs = call.behavior_logprobs
  return [
    '',
    row(
      `call ${index}`,
      `${call.call_id}  ${call.finish_reason}  ${trainable} of ${call.response_token_ids.length} trainable`,
    ),
    row('prompt', formatList(call.prompt_token_ids)),
    row('response', formatList(call.response_token_ids)),
    row('mask', formatList(call.response_loss_mask)),
    ...(logprobs === undefined
      ? []
      : [row('logprobs', formatList(logprobs.map((value) => Number(value.toFixed(4)))))]),
    ...call.context.map(({ role, content }) => row(role, content)),
  ]
}

/** The figures of one file. */
export function formatStats(file: string, stats: TrajectoryStats): string {
  const { reward } = stats
  return lines([
    file,
    row('episodes', `${stats.episodes} in ${stats.groups} groups (${formatCounts(stats.sourceKinds)})`),
    row(
      'calls',
      `${stats.calls}, ${stats.callsWithLogprobs} with log probabilities (${formatCounts(stats.finishReasons)})`,
    ),
    row('prompt', `${stats.promptTokens} tokens, ${stats.longestPrompt} in the longest`),
    row('response', `${stats.responseTokens} tokens, ${stats.longestResponse} in the longest`),
    row('trainable', `${stats.trainableTokens} tokens`),
    row('reward', `${reward.min} to ${reward.max}, mean ${reward.mean}`),
  ])
}

function formatCounts(counts: Readonly<Record<string, number>>): string {
  const shown = Object.entries(counts).filter(([, count]) => count > 0)
  return shown.map(([name, count]) => `${name} ${count}`).join(', ')
}

/** A long list by its two ends. */
function formatList(items: readonly (number | bigint)[]): string {
  const half = SHOWN_TOKENS / 2
  if (items.length <= SHOWN_TOKENS) return `[${items.join(' ')}]`
  return `[${items.slice(0, half).join(' ')} … ${items.slice(-half).join(' ')}] ${items.length}`
}

function row(name: string, text: string): string {
  return `  ${name.padEnd(10)} ${toPrintable(text)}`
}

function lines(rows: readonly string[]): string {
  return `${rows.join('\n')}\n`
}
