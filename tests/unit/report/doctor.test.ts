// The findings of doctor: a lack is a failure only where a stage needs the thing, and each says what to do.

import { expect, test } from 'vitest'
import type { MachineFacts, Needs } from '../../../src/model/machine.ts'
import { diagnose, exitOfFindings, type Finding, formatFindings } from '../../../src/report/doctor.ts'

const NOW_MS = Date.UTC(2026, 11, 1, 12)
const MISSING = { path: undefined, why: 'not on PATH' }

const FACTS: MachineFacts = {
  system: 'linux x64 glibc',
  node: { path: '/opt/node', version: 'v24.1.0' },
  programs: {
    git: { path: '/usr/bin/git', version: 'git version 2.39.5' },
    ...{ uv: MISSING, python: MISSING, zstd: MISSING },
  },
  runtimes: { podman: MISSING, docker: MISSING },
  tools: {},
  checks: {},
  gpus: [],
  cuda: '',
  cpus: 4,
  memoryMiB: 16_384,
  disk: { path: '/project', freeBytes: 8e10, unwritable: undefined, skewMs: 3 },
  nowMs: NOW_MS,
  pastMs: NOW_MS - 60_000,
}

const NEEDS: Needs = { gpu: [], image: [], tools: {}, memory: undefined }

const H200 = { model: 'NVIDIA H200', driver: '570.1', computeCapability: '9.0', memoryMiB: 143_771 }

function find(facts: Partial<MachineFacts>, needs: Partial<Needs>, what: string): Finding {
  const found = diagnose({ ...FACTS, ...facts }, { ...NEEDS, ...needs }).find((each) => each.what === what)
  if (!found) throw new Error(`nothing is said of ${what}`)
  return found
}

test('a bare machine is well where nothing is needed', () => {
  const findings = diagnose(FACTS, NEEDS)

  expect(findings.filter(({ state }) => state !== 'ok')).toEqual([])
  expect(exitOfFindings(findings)).toBe(0)
})

const STATES: readonly [string, Partial<MachineFacts>, Partial<Needs>, string, Finding['state'], RegExp][] = [
  ['a GPU that a stage asks for', {}, { gpu: ['ppo'] }, 'gpu', 'fail', /stage "ppo" asks for one/],
  ['a GPU that is there', { gpus: [H200], cuda: '12.8' }, { gpu: ['ppo'] }, 'gpu', 'ok', /H200 151 GB/],
  ['its capability', { gpus: [H200, H200], cuda: '12.8' }, {}, 'capability', 'ok', /^9\.0$/],
  ['a driver without CUDA', { gpus: [H200] }, {}, 'cuda', 'warn', /names none/],
  [
    'a runtime for images',
    {},
    { image: ['a', 'b'] },
    'containers',
    'fail',
    /stages "a", "b" have an image; podman: not on PATH/,
  ],
  [
    'a declared tool',
    { tools: { 'jq -V': MISSING } },
    { tools: { 'jq -V': ['a'] } },
    'jq',
    'fail',
    /not on PATH/,
  ],
  [
    'a failed check',
    { checks: { python: { passed: false, lines: ['no 3.12', 'get it'] } } },
    {},
    'python',
    'fail',
    /no 3\.12/,
  ],
  ['a passed check', { checks: { uv: { passed: true, lines: ['uv 1'] } } }, {}, 'uv', 'ok', /uv 1/],
  ['git', { programs: { git: MISSING } }, {}, 'git', 'warn', /not on PATH/],
  ['memory', {}, { memory: { mostMiB: 99_999, stage: 'big' } }, 'memory', 'warn', /17 GB/],
  ['little room', { disk: { ...FACTS.disk, freeBytes: 1e9 } }, {}, 'disk', 'warn', /1\.0 GB free/],
  ['no room', { disk: { ...FACTS.disk, freeBytes: 1e6 } }, {}, 'disk', 'fail', /1\.0 MB free/],
  [
    'a folder that cannot be written',
    { disk: { ...FACTS.disk, unwritable: 'EACCES' } },
    {},
    'disk',
    'fail',
    /EACCES/,
  ],
  ['a clock that is behind', { pastMs: NOW_MS + 86_400_000 }, {}, 'clock', 'warn', /before the last change/],
  [
    'a disk with another clock',
    { disk: { ...FACTS.disk, skewMs: -90_000 } },
    {},
    'clock',
    'warn',
    /-90\.0 s off/,
  ],
]

test.each(STATES)('%s', (_, facts, needs, what, state, found) => {
  const finding = find(facts, needs, what)

  expect(finding.state).toBe(state)
  expect(finding.found).toMatch(found)
  expect(finding.mend !== undefined).toBe(state !== 'ok')
})

test('one failure gives the exit code of a machine at fault; a warning does not', () => {
  expect(exitOfFindings([{ state: 'warn', what: 'a', found: 'b' }])).toBe(0)
  expect(exitOfFindings([{ state: 'fail', what: 'a', found: 'b' }])).toBe(3)
})

test('each finding is a line, with its mend below it', () => {
  const text = formatFindings([
    { state: 'ok', what: 'node', found: 'v24' },
    { state: 'fail', what: 'python', found: 'none', mend: 'install one\nor set PILOT_PYTHON' },
  ])

  expect(text).toBe(`ok    node    v24
fail  python  none
      install one
      or set PILOT_PYTHON

doctor: 1 ok, 0 warn, 1 fail`)
})
