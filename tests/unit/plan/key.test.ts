import { expect, test } from 'vitest'
import { ACTION_SCHEMA, type Action, actionDigest } from '../../../src/model/action.ts'
import { toCanonicalJson } from '../../../src/model/canonical.ts'
import { digestOf } from '../../../src/model/digest.ts'
import type { Stage } from '../../../src/model/stage.ts'
import { definitionDigest, type Facts, toAction, toolKey } from '../../../src/plan/key.ts'
import { plainStage } from '../../rig/stages.ts'
import golden from './golden-actions.json' with { type: 'json' }

const FACTS: Facts = {
  platform: { os: 'linux', arch: 'x64', libc: 'glibc' },
  environment: { SEED: '1', EMPTY: '', OTHER: 'x' },
  tools: new Map([[toolKey(['uv', '--version']), 'uv 0.13.9']]),
  accelerator: { model: 'H200', driver: '580.65', cuda: '13.0' },
}

const STAGE = plainStage('train', {
  argv: ['python', '{src}/train.py', '{in:data}', '{out:out}', '--name', 'ü"\\'],
  inputs: {
    src: { from: 'source', path: 'stages/train', kind: 'tree' },
    data: { from: 'source', path: 'data.jsonl', kind: 'file' },
  },
  environment: {
    keep: ['SEED', 'EMPTY', 'ABSENT'],
    pass: ['OTHER'],
    secrets: ['TOKEN'],
    set: { MODE: 'fast' },
  },
  tools: { uv: { command: ['uv', '--version'] } },
  lockfile: 'data',
  image: `registry/x@sha256:${'0'.repeat(64)}`,
  accelerator: ['model', 'driver'],
})

const INPUTS = {
  src: { digest: digestOf('src'), origin: 'stages/train' },
  data: { digest: digestOf('data'), origin: 'data.jsonl' },
}

const ACTION = toAction(STAGE, INPUTS, FACTS)
const KEY = actionDigest(ACTION)

test('the digest of each schema version is as it was', () => {
  expect(golden[ACTION_SCHEMA]).toBe(KEY)
})

const unchanged: readonly (readonly [string, Partial<Stage>])[] = [
  ['name', { name: 'other' }],
  ['retries', { retries: 9 }],
  ['time limit', { timeoutMs: 5 }],
  ['resources', { resources: { cpus: 2, memoryMiB: 1, gpus: 1 } }],
  ['isolation', { isolation: 'sandbox' }],
  ['network', { network: true }],
  ['passed variables', { environment: { ...STAGE.environment, pass: [] } }],
  ['secrets', { environment: { ...STAGE.environment, secrets: [] } }],
  ['resume folder', { resume: 'ckpt' }],
  ['place of declaration', { where: () => undefined }],
]

test.each(unchanged)('not in the key: %s', (_, fields) => {
  expect(actionDigest(toAction({ ...STAGE, ...fields }, INPUTS, FACTS))).toBe(KEY)
})

const changed: readonly (readonly [string, (action: Action) => Action])[] = [
  ['an argument', (a) => ({ ...a, argv: [...a.argv.slice(0, -1), 'v'] })],
  ['the order of arguments', (a) => ({ ...a, argv: [...a.argv].reverse() })],
  ['two arguments joined', (a) => ({ ...a, argv: [a.argv.slice(0, 2).join(' '), ...a.argv.slice(2)] })],
  [
    'the content of an input',
    (a) => ({
      ...a,
      inputs: { ...a.inputs, data: { kind: 'file', digest: digestOf('new'), as: 'data.jsonl' } },
    }),
  ],
  ['the name of an input', (a) => ({ ...a, inputs: { src: pick(a, 'src'), more: pick(a, 'data') } })],
  [
    'the name it appears under',
    (a) => ({ ...a, inputs: { ...a.inputs, data: { ...pick(a, 'data'), as: 'data.csv' } } }),
  ],
  [
    'the kind of an input',
    (a) => ({ ...a, inputs: { ...a.inputs, data: { ...pick(a, 'data'), kind: 'json' } } }),
  ],
  ['a variable', (a) => ({ ...a, environment: { ...a.environment, SEED: '2' } })],
  [
    'a variable set to nothing instead of unset',
    (a) => ({ ...a, environment: { ...a.environment, ABSENT: '' } }),
  ],
  ['a variable unset instead of empty', (a) => ({ ...a, environment: { ...a.environment, EMPTY: null } })],
  ['the path of an output', (a) => ({ ...a, outputs: { out: { kind: 'file', path: 'elsewhere' } } })],
  ['the name of an output', (a) => ({ ...a, outputs: { result: { kind: 'file', path: 'out' } } })],
  [
    'the schema of an output',
    (a) => ({ ...a, outputs: { out: { kind: 'file', path: 'out', schema: digestOf('s') } } }),
  ],
  ['the operating system', (a) => ({ ...a, platform: { ...a.platform, os: 'darwin' } })],
  ['the architecture', (a) => ({ ...a, platform: { ...a.platform, arch: 'arm64' } })],
  ['the C library', (a) => ({ ...a, platform: { ...a.platform, libc: 'musl' } })],
  ['the version of a tool', (a) => ({ ...a, tools: { uv: 'uv 0.14.0' } })],
  ['the lockfile', (a) => ({ ...a, lockfile: digestOf('lock') })],
  ['the image', (a) => ({ ...a, image: null })],
  ['the accelerator driver', (a) => ({ ...a, accelerator: { ...a.accelerator, driver: '581' } })],
]

test.each(changed)('in the key: %s', (_, change) => {
  expect(actionDigest(change(ACTION))).not.toBe(KEY)
})

test('set, empty and unset are three keys', () => {
  const keys = ['a', '', undefined].map((value) =>
    actionDigest(toAction(STAGE, INPUTS, { ...FACTS, environment: { ...FACTS.environment, ABSENT: value } })),
  )

  expect(new Set(keys).size).toBe(3)
})

test('an undeclared variable is in no action', () => {
  expect(
    JSON.stringify(
      toAction(STAGE, INPUTS, { ...FACTS, environment: { ...FACTS.environment, STRAY: 'secret-value' } }),
    ),
  ).not.toContain('STRAY')
})

test('a file input keeps the extension of what it is, a folder its plain name', () => {
  expect(ACTION.inputs['data']?.as).toBe('data.jsonl')
  expect(ACTION.inputs['src']?.as).toBe('src')
})

test('the definition digest does not depend on what the inputs hold', () => {
  expect(definitionDigest(STAGE, FACTS)).toBe(definitionDigest({ ...STAGE, name: 'other' }, FACTS))
  expect(definitionDigest(STAGE, FACTS)).not.toBe(definitionDigest({ ...STAGE, argv: ['x'] }, FACTS))
})

function pick(action: Action, name: string) {
  const input = action.inputs[name]
  if (!input) throw new RangeError(name)
  return input
}

test('the digest is that of the canonical JSON of the whole action', () => {
  // Plain strings, nulls and records of them, which is what CanonicalValue describes.
  const text = toCanonicalJson(ACTION as unknown as Record<string, string>)

  expect(KEY).toBe(digestOf(`${ACTION_SCHEMA}\n${text}`))
})
