// The translators on what the real systems wrote, and the matrix of planted faults: each translator rejects each fault by
// its own rule. Every row that comes out passes the contract, group by group.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { readTrajectories, writeTrajectories } from '../../trajectory/index.ts'
import {
  type LauncherInput,
  TranslateError,
  type TranslateRule,
  type Translation,
  translateAgentLightning,
  translateNemoGym,
  translateTrl,
  translateVerifiers01,
  translateVerifiers04,
  translateVerl,
} from '../../trajectory/translate/index.ts'

// biome-ignore lint/suspicious/noExplicitAny: samples are edited field by field to plant faults.
type Json = any

const text = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`samples/${path}`, import.meta.url)), 'utf8')
const json = (path: string): Json => JSON.parse(text(path))
const lines = (path: string): Json[] =>
  text(path)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

const DIGEST = 'a'.repeat(64)
const LAUNCHER: Omit<LauncherInput, 'sourceVersion'> = {
  sourceKind: 'fixture',
  policy: {
    revision: `sha256-${DIGEST}`,
    version: 0,
    tokenizerId: 'bytes',
    tokenizerRevision: `sha256-${DIGEST}`,
    chatTemplateSha256: DIGEST,
    modelId: 'toy',
  },
  harness: { name: 'calc', version: '1', revision: `sha256-${DIGEST}` },
  scorer: { name: 'exact', revision: `sha256-${DIGEST}` },
}

interface Source {
  readonly name: string
  readonly version: string
  /** A fresh copy of the sample, two episodes or more of one group. */
  readonly sample: () => Json
  readonly launcher: LauncherInput
  readonly translate: (source: Json, launcher: LauncherInput) => Translation
  readonly rollouts: number
  /** Each edits the sample, or the launcher's word where the source has none. */
  readonly plant: Readonly<Record<Fault, (source: Json, launcher: Json) => void>>
}

type Fault =
  | 'stale policy'
  | 'unknown policy'
  | 'foreign event'
  | 'second policy'
  | 'second scorer'
  | 'trained observation'
  | 'no reward'

const RULES: Readonly<Record<Fault, TranslateRule>> = {
  'stale policy': 'policy-version',
  'unknown policy': 'policy-version',
  'foreign event': 'foreign-event',
  'second policy': 'group-identity',
  'second scorer': 'group-identity',
  'trained observation': 'trainable-observation',
  'no reward': 'missing-reward',
}

const NEMO = lines('nemo-gym/rollouts.jsonl')
const TRL_ROWS = ['r0', 'r1', 'r2', 'r3']
const VERIFIERS_01 = lines('verifiers-0.1/results.jsonl')
const VERIFIERS_04 = lines('verifiers-0.4/trainclient.jsonl')

const SOURCES: readonly Source[] = [
  {
    name: 'agent lightning',
    version: '1.0.2',
    sample: () =>
      ['ok_seed0', 'ok_seed1', 'rewrite', 'crash', 'gateway_5xx'].map((name) => {
        const sample = json(`agent-lightning/${name}.json`)
        return { rollout: sample.rollout ?? sample.rollout_detail.rollout, events: sample.events }
      }),
    launcher: {
      ...LAUNCHER,
      sourceVersion: '1.0.2',
      episodes: Object.fromEntries(
        ['ok_seed0', 'ok_seed1', 'rewrite'].map((name) => [
          json(`agent-lightning/${name}.json`).rollout.rollout_id,
          { task: json(`agent-lightning/${name}.json`).rollout.metadata.group_id },
        ]),
      ),
    },
    translate: translateAgentLightning,
    rollouts: 5,
    plant: {
      'stale policy': ([first]) => (first.events[0].data.model_version = 7),
      'unknown policy': ([first]) => (first.events[0].data.model_version = null),
      'foreign event': ([first, second]) => (first.events[0] = second.events[0]),
      'second policy': ([, second]) => {
        for (const event of second.events) if (event.data.model) event.data.model = 'other'
      },
      'second scorer': ([first]) => (first.events.at(-1).data.scorer = 'other'),
      'trained observation': ([first]) => (first.events[0].data.response.choices[0].message.role = 'tool'),
      'no reward': ([first]) => first.events.pop(),
    },
  },
  {
    name: 'verl',
    version: '0.8.0',
    sample: () =>
      [0, 1].map((i) => ({
        request_id: `v${i}`,
        uid: 'g',
        prompt_ids: [1, 2, 3],
        response_ids: [4, 5, 6, 7, 8, 9],
        response_mask: [1, 1, 0, 0, 1, 1],
        response_logprobs: [-0.1, -0.2, 0, 0, -0.3, -0.4],
        num_turns: 4,
        reward_score: i,
        extra_fields: { min_global_steps: 0, max_global_steps: 0, request_id: `v${i}` },
      })),
    launcher: {
      ...LAUNCHER,
      sourceVersion: '0.8.0',
      episodes: { v0: { task: 't', seed: 1 }, v1: { task: 't', seed: 2 } },
    },
    translate: translateVerl,
    rollouts: 2,
    plant: {
      'stale policy': ([first]) => (first.extra_fields.max_global_steps = 1),
      'unknown policy': ([first]) => (first.extra_fields = { request_id: 'v0' }),
      'foreign event': ([first]) => (first.extra_fields.request_id = 'v1'),
      'second policy': ([first]) => (first.extra_fields.model = 'other'),
      'second scorer': ([first]) => (first.extra_fields.scorer = 'other'),
      'trained observation': ([first]) => (first.response_mask = [1, 1, 1, 1, 1, 1]),
      'no reward': ([first]) => (first.reward_score = null),
    },
  },
  {
    name: 'trl',
    version: '1.16.0',
    sample: () => json('trl/batch0.json'),
    launcher: {
      ...LAUNCHER,
      sourceVersion: '1.16.0',
      episodes: Object.fromEntries(
        TRL_ROWS.map((row, i) => [
          row,
          { task: 't', group: 'g', seed: i, policyVersion: 0, reward: i % 2, scorer: 'exact' },
        ]),
      ),
    },
    translate: (source, launcher) => translateTrl(source, launcher, TRL_ROWS),
    rollouts: 4,
    plant: {
      'stale policy': (_, launcher) => (launcher.episodes.r0.policyVersion = 1),
      'unknown policy': (_, launcher) => delete launcher.episodes.r0.policyVersion,
      'foreign event': (source) => source.prompt_ids[1].reverse(),
      'second policy': (_, launcher) => (launcher.episodes.r0.modelId = 'other'),
      'second scorer': (_, launcher) => (launcher.episodes.r0.scorer = 'other'),
      'trained observation': (source) => delete source.tool_mask,
      'no reward': (_, launcher) => delete launcher.episodes.r0.reward,
    },
  },
  {
    name: 'nemo gym',
    version: '0.4.0',
    sample: () => structuredClone(NEMO),
    launcher: {
      ...LAUNCHER,
      sourceVersion: '0.4.0',
      episodes: Object.fromEntries(
        NEMO.map((row, i) => [
          `run-${row._ng_task_index}-${row._ng_rollout_index}`,
          { policyVersion: 0, seed: i },
        ]),
      ),
    },
    translate: (source, launcher) => translateNemoGym(source, launcher, 'run'),
    rollouts: NEMO.length,
    plant: {
      'stale policy': ([first]) => (first.policy_version = 1),
      'unknown policy': ([first], launcher) =>
        delete launcher.episodes[`run-${first._ng_task_index}-${first._ng_rollout_index}`].policyVersion,
      'foreign event': ([first]) =>
        (first.response.output.find((item: Json) => item.type === 'function_call_output').call_id =
          'call_of_another'),
      'second policy': ([first]) => (first.response.model = 'other'),
      'second scorer': ([first]) => (first.verifier = 'other'),
      'trained observation': ([first]) => {
        const seen = first.response.output.find((item: Json) => item.type === 'function_call_output')
        Object.assign(seen, { prompt_token_ids: [1], generation_token_ids: [2], generation_log_probs: [-1] })
      },
      'no reward': ([first]) => (first.reward = null),
    },
  },
  {
    name: 'verifiers 0.1',
    version: '0.1.14',
    sample: () => ({ metadata: json('verifiers-0.1/metadata.json'), results: structuredClone(VERIFIERS_01) }),
    launcher: {
      ...LAUNCHER,
      sourceVersion: '0.1.14',
      episodes: Object.fromEntries(
        VERIFIERS_01.map((row, i) => [row.trajectory[0].trajectory_id, { seed: i, policyVersion: 0 }]),
      ),
    },
    translate: translateVerifiers01,
    rollouts: VERIFIERS_01.length,
    plant: {
      'stale policy': ({ results: [first] }) => (first.trajectory[1].extras = { policy_version: 1 }),
      'unknown policy': ({ results: [first] }, launcher) =>
        delete launcher.episodes[first.trajectory[0].trajectory_id].policyVersion,
      'foreign event': ({ results: [first, second] }) => (first.trajectory[1] = second.trajectory[1]),
      'second policy': ({ results: [first] }) => (first.trajectory[0].response.model = 'other'),
      'second scorer': ({ results: [first] }) => (first.scorer = 'other'),
      'trained observation': ({ results: [first] }) => (first.trajectory[1].tokens.prompt_mask[400] = 1),
      'no reward': ({ results: [first] }) => (first.reward = null),
    },
  },
  {
    name: 'verifiers 0.4',
    version: '0.4.0',
    // The sample holds one episode; a second of its group is the same under another id.
    sample: () =>
      [0, 1].map((i) => {
        const [episode] = structuredClone(VERIFIERS_04)
        episode.id += i
        episode.traces[0].id += i
        return episode
      }),
    launcher: {
      ...LAUNCHER,
      sourceVersion: '0.4.0',
      episodes: Object.fromEntries(
        [0, 1].map((i) => [VERIFIERS_04[0].traces[0].id + i, { seed: i, policyVersion: 0 }]),
      ),
    },
    translate: translateVerifiers04,
    rollouts: 2,
    plant: {
      'stale policy': ([first]) => (first.run.work = { policy: { start: 0, end: 1 } }),
      'unknown policy': ([first], launcher) => delete launcher.episodes[first.traces[0].id].policyVersion,
      'foreign event': ([first]) => (first.traces[0].task.key = DIGEST),
      'second policy': ([first]) => {
        for (const call of first.traces[0].calls) call.model = 'other'
      },
      'second scorer': ([first]) => (first.traces[0].rewards = { other: { score: 1, weight: 1 } }),
      'trained observation': ([first]) => (first.traces[0].nodes[0].mask[5] = true),
      'no reward': ([first]) => (first.traces[0].rewards.correct.score = null),
    },
  },
]

const folder = mkdtempSync(join(tmpdir(), 'translate-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe.each(SOURCES)('$name', (source) => {
  test('its sample becomes rows that the contract accepts, and every rollout is a row or a diagnostic', async () => {
    const { rows, diagnostics } = source.translate(source.sample(), source.launcher)

    const path = join(folder, `${source.name}.jsonl`)
    await writeTrajectories(path, rows)
    const read = await Array.fromAsync(readTrajectories(path))
    expect(read).toEqual(rows)
    expect(rows.length + diagnostics.length).toBe(source.rollouts)
    expect(rows.length).toBeGreaterThan(1)
    expect(rows.every((row) => row.source_kind === 'fixture')).toBe(true)
  })

  test.each(Object.entries(RULES) as [Fault, TranslateRule][])(
    '%s is rejected by its rule',
    (fault, rule) => {
      const sample = source.sample()
      const launcher = structuredClone(source.launcher)
      source.plant[fault](sample, launcher)

      expect(rulesOf(() => source.translate(sample, launcher))).toEqual([rule])
    },
  )

  test('another version of the source is refused', () => {
    const launcher = { ...source.launcher, sourceVersion: '99.0' }

    expect(rulesOf(() => source.translate(source.sample(), launcher))).toEqual(['source-version'])
  })

  test.each(['policy', 'harness', 'scorer', 'sourceKind'] as const)(
    'without the launcher’s %s it is refused by name',
    (field) => {
      const launcher: Json = structuredClone(source.launcher)
      delete launcher[field]

      expect(() => source.translate(source.sample(), launcher)).toThrow(`$launcher.${field}`)
    },
  )

  test('what is no such source is refused with its place', () => {
    expect(rulesOf(() => source.translate([{ nothing: 1 }], source.launcher))).toEqual(['source-shape'])
  })
})

test('calls hold what was sampled: a tool turn of TRL is the next call’s prompt', () => {
  const trl = SOURCES.find(({ name }) => name === 'trl')
  const batch = json('trl/batch0.json')

  const rows = trl?.translate(batch, trl.launcher).rows ?? []

  const toolRow = rows[0]
  expect(toolRow?.calls.length).toBe(2)
  const sampled = toolRow?.calls.flatMap((call) => call.response_token_ids).length
  expect(sampled).toBe(batch.tool_mask[0].filter((bit: number) => bit === 1).length)
  expect(toolRow?.calls[1]?.prompt_token_ids.slice(0, 746)).toEqual(batch.prompt_ids[0])
})

test('a crash and a gateway failure are diagnostics, each of its kind', () => {
  const [source] = SOURCES
  const { diagnostics } = source?.translate(source.sample(), source.launcher) ?? { diagnostics: [] }

  expect(diagnostics.map(({ kind }) => kind).sort()).toEqual(['gateway', 'worker'])
})

function rulesOf(work: () => unknown): readonly string[] {
  try {
    work()
  } catch (error) {
    if (error instanceof TranslateError) return [...new Set(error.faults.map(({ rule }) => rule))]
    throw error
  }
  return []
}
