// What every source comes to before it is judged: an episode with its calls, nothing left out and nothing decided.

import type { FINISH_REASONS } from '../words.ts'

export interface SourceCall {
  /** JSON path in the source. */
  readonly path: string
  /** Rollout the source itself says the call is of. */
  readonly rollout: string
  readonly callId: string
  readonly prompt: readonly number[]
  readonly response: readonly number[]
  /** 1 where the source would train the token. Aligned to the response. */
  readonly trainable: readonly number[]
  /** 1 where the policy sampled the token. Aligned to the response. */
  readonly sampled: readonly number[]
  readonly logprobs: readonly number[] | undefined
  readonly finishReason: (typeof FINISH_REASONS)[number]
  readonly context: readonly { readonly role: string; readonly content: string }[]
  /** Undefined where the source does not say. */
  readonly policyVersion: number | string | undefined
}

export interface SourceFailure {
  /** Of the machinery, not of the task. */
  readonly kind: 'gateway' | 'tool' | 'worker' | 'incomplete'
  readonly message: string
}

export interface SourceEpisode {
  readonly path: string
  readonly rollout: string
  readonly task: string | undefined
  readonly group: string | undefined
  readonly seed: number | undefined
  readonly modelId: string | undefined
  readonly scorer: string | undefined
  readonly reward: number | undefined
  readonly calls: readonly SourceCall[]
  /** An episode that did not end as one is a diagnostic, and is never scored. */
  readonly failure: SourceFailure | undefined
}

/** Text of a message for the audit: null is empty, tool calls stand in it as JSON. */
export function contextText(message: Readonly<Record<string, unknown>>): string {
  const content =
    typeof message['content'] === 'string'
      ? message['content']
      : message['content']
        ? JSON.stringify(message['content'])
        : ''
  const calls = message['tool_calls']
  return Array.isArray(calls) && calls.length > 0 ? `${content}${JSON.stringify(calls)}` : content
}

/** `developer` and such are the contract's `system`. */
export function contextRole(role: unknown): string {
  return role === 'user' || role === 'assistant' || role === 'tool' || role === 'system' ? role : 'system'
}
