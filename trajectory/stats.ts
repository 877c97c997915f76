// Figures of a valid file.
import { readBlocks } from './blocks.ts'
import { createFileChecker } from './check-file.ts'
import { TrajectoryError } from './fault.ts'
import type { Call, Trajectory } from './schema.ts'

export interface TrajectoryStats {
  readonly episodes: number
  readonly groups: number
  readonly calls: number
  /** Calls with log probabilities. */
  readonly callsWithLogprobs: number
  readonly promptTokens: number
  readonly responseTokens: number
  readonly trainableTokens: number
  readonly longestPrompt: number
  readonly longestResponse: number
  readonly reward: { readonly min: number; readonly mean: number; readonly max: number }
  readonly sourceKinds: Readonly<Record<Trajectory['source_kind'], number>>
  readonly finishReasons: Readonly<Record<Call['finish_reason'], number>>
}

/** Reads a file once and counts. @throws as readTrajectories does */
export async function trajectoryStats(path: string): Promise<TrajectoryStats> {
  const checker = createFileChecker()
  const sums = emptySums()
  for await (const block of readBlocks(path)) {
    const [fault] = checker.check(block, false, (_line, read) => addEpisode(sums, read()))
    if (fault !== undefined) throw new TrajectoryError(fault, path)
  }
  const [fault] = checker.finish()
  if (fault !== undefined) throw new TrajectoryError(fault, path)
  const { min, max, total, ...counts } = sums
  return {
    episodes: checker.episodes,
    groups: checker.groups,
    ...counts,
    reward: { min, mean: total / checker.episodes, max },
  }
}

function emptySums() {
  return {
    calls: 0,
    callsWithLogprobs: 0,
    promptTokens: 0,
    responseTokens: 0,
    trainableTokens: 0,
    longestPrompt: 0,
    longestResponse: 0,
    min: Number.POSITIVE_INFINITY,
    max: Number.NEGATIVE_INFINITY,
    total: 0,
    sourceKinds: { captured: 0, fixture: 0 },
    finishReasons: { stop: 0, length: 0, tool_calls: 0 },
  }
}

function addEpisode(sums: ReturnType<typeof emptySums>, episode: Trajectory): void {
  const { value } = episode.reward
  sums.min = Math.min(sums.min, value)
  sums.max = Math.max(sums.max, value)
  sums.total += value
  sums.sourceKinds[episode.source_kind]++
  for (const call of episode.calls) {
    sums.calls++
    if (call.behavior_logprobs !== undefined) sums.callsWithLogprobs++
    sums.promptTokens += call.prompt_token_ids.length
    sums.responseTokens += call.response_token_ids.length
    for (const bit of call.response_loss_mask) sums.trainableTokens += bit
    sums.longestPrompt = Math.max(sums.longestPrompt, call.prompt_token_ids.length)
    sums.longestResponse = Math.max(sums.longestResponse, call.response_token_ids.length)
    sums.finishReasons[call.finish_reason]++
  }
}
