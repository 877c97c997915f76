// Episodes of any source -> rows of the contract and diagnostics. Every rollout becomes exactly one of the two.

import { trajectoryFaults } from '../check-record.ts'
import type { Trajectory } from '../schema.ts'
import { SCHEMA_VERSION } from '../words.ts'
import type { SourceCall, SourceEpisode } from './episode.ts'
import type { Launcher } from './launcher.ts'
import { TranslateError, type TranslateFault, type TranslateRule } from './translate-error.ts'

/** A rollout that is no scored episode. */
export interface Diagnostic {
  readonly episode_id: string
  readonly task_id: string | null
  readonly group_id: string | null
  readonly kind: string
  readonly message: string
  /** Model calls it had made. */
  readonly calls: number
}

export interface Translation {
  readonly rows: readonly Trajectory[]
  readonly diagnostics: readonly Diagnostic[]
}

/** @throws TranslateError with every fault found */
export function toTranslation(episodes: readonly SourceEpisode[], launcher: Launcher): Translation {
  const faults: TranslateFault[] = []
  const whole = episodes.filter((episode) => episode.failure === undefined)
  const completed = whole.map((episode) => complete(episode, launcher, faults))
  for (const episode of completed) checkEpisode(episode, launcher, faults)
  checkGroups(completed, faults)
  if (faults.length > 0) throw new TranslateError(faults)
  const rows = completed.map((episode) => toRow(episode, launcher))
  checkContract(rows, faults)
  if (faults.length > 0) throw new TranslateError(faults)
  return { rows, diagnostics: episodes.flatMap((episode) => toDiagnostic(episode, launcher) ?? []) }
}

/** An episode with what the launcher adds; the source's own word counts first. */
interface Completed extends SourceEpisode {
  readonly task: string
  readonly group: string
  readonly seed: number
  readonly modelId: string
  readonly scorer: string
  readonly reward: number
}

function complete(episode: SourceEpisode, launcher: Launcher, faults: TranslateFault[]): Completed {
  const added = launcher.episodes[episode.rollout] ?? {}
  const need = <T>(field: string, value: T | undefined, rule: TranslateRule, none: T): T => {
    if (value !== undefined) return value
    faults.push({
      rule,
      rollout: episode.rollout,
      path: `$launcher.episodes.${episode.rollout}.${field}`,
      message: `neither the source nor the launcher says the ${field}`,
    })
    return none
  }
  return {
    ...episode,
    task: need('task', episode.task ?? added.task, 'launcher-field', ''),
    group: need('group', episode.group ?? added.group, 'launcher-field', ''),
    seed: need('seed', episode.seed ?? added.seed, 'launcher-field', 0),
    modelId: need('model', episode.modelId ?? added.modelId ?? launcher.policy.modelId, 'launcher-field', ''),
    scorer: episode.scorer ?? added.scorer ?? launcher.scorer.name,
    reward: need('reward', episode.reward ?? added.reward, 'missing-reward', 0),
    calls: episode.calls.map((call) => ({
      ...call,
      policyVersion: call.policyVersion ?? added.policyVersion,
    })),
  }
}

function checkEpisode(episode: Completed, launcher: Launcher, faults: TranslateFault[]): void {
  const fault = (rule: TranslateRule, call: SourceCall, message: string): void => {
    faults.push({ rule, rollout: episode.rollout, path: call.path, message })
  }
  for (const call of episode.calls) {
    if (call.rollout !== episode.rollout) {
      fault('foreign-event', call, `the call is of rollout ${call.rollout}`)
    }
    if (call.policyVersion === undefined) {
      fault('policy-version', call, 'nobody says by which version of the policy it was answered')
    } else if (call.policyVersion !== launcher.policy.version) {
      fault(
        'policy-version',
        call,
        `it was answered by version ${call.policyVersion}, not by ${launcher.policy.version}`,
      )
    }
    const at = call.trainable.findIndex((bit, i) => bit === 1 && call.sampled[i] !== 1)
    if (at >= 0)
      fault('trainable-observation', call, `token ${at} of the response is trainable and was not sampled`)
  }
}

/** A group compares rollouts: one task, one policy, one scorer. */
function checkGroups(episodes: readonly Completed[], faults: TranslateFault[]): void {
  const first = new Map<string, Completed>()
  for (const episode of episodes) {
    const lead = first.get(episode.group)
    if (!lead) {
      first.set(episode.group, episode)
      continue
    }
    for (const field of ['task', 'modelId', 'scorer'] as const) {
      if (episode[field] === lead[field]) continue
      faults.push({
        rule: 'group-identity',
        rollout: episode.rollout,
        path: episode.path,
        message: `group ${episode.group} holds two: ${field} ${lead[field]} and ${episode[field]}`,
      })
    }
  }
}

function toRow(episode: Completed, launcher: Launcher): Trajectory {
  const { policy, harness, scorer } = launcher
  return {
    schema_version: SCHEMA_VERSION,
    episode_id: episode.rollout,
    task_id: episode.task,
    group_id: episode.group,
    seed: episode.seed,
    source_kind: launcher.sourceKind,
    policy: {
      model_id: episode.modelId,
      revision: policy.revision,
      tokenizer_id: policy.tokenizerId,
      tokenizer_revision: policy.tokenizerRevision,
      chat_template_sha256: policy.chatTemplateSha256,
    },
    harness: { ...harness },
    reward: { value: episode.reward, scorer: episode.scorer, scorer_revision: scorer.revision },
    calls: episode.calls.map(toCall),
  }
}

function toCall(call: SourceCall): Trajectory['calls'][number] {
  return {
    call_id: call.callId,
    prompt_token_ids: [...call.prompt],
    response_token_ids: [...call.response],
    response_role: 'assistant',
    // Checked to be 0 and 1 only by `checkContract`.
    response_loss_mask: call.trainable.map((bit) => (bit === 1 ? 1 : 0)),
    finish_reason: call.finishReason,
    context: call.context.map(({ role, content }) => ({
      role,
      content,
    })) as Trajectory['calls'][number]['context'],
    ...(call.logprobs && { behavior_logprobs: [...call.logprobs] }),
  }
}

/** The contract has the last word over each row. */
function checkContract(rows: readonly Trajectory[], faults: TranslateFault[]): void {
  for (const row of rows) {
    for (const { rule, path, message } of trajectoryFaults(row)) {
      faults.push({
        rule: 'contract',
        rollout: row.episode_id,
        path: path ?? '$',
        message: `${rule}: ${message}`,
      })
    }
  }
}

function toDiagnostic(episode: SourceEpisode, launcher: Launcher): Diagnostic | undefined {
  if (!episode.failure) return undefined
  const added = launcher.episodes[episode.rollout] ?? {}
  return {
    episode_id: episode.rollout,
    task_id: episode.task ?? added.task ?? null,
    group_id: episode.group ?? added.group ?? null,
    kind: episode.failure.kind,
    message: episode.failure.message,
    calls: episode.calls.length,
  }
}
