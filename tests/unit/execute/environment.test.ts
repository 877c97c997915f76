// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell text that must stay as it is

import { expect, test } from 'vitest'
import { expandArgv, secretValues, toEnvironment } from '../../../src/execute/environment.ts'

const SPEC = { keep: ['MODE'], pass: ['CACHE'], secrets: ['TOKEN'], set: { SEED: '1' } }
const host = { PATH: '/bin', HOME: '/home/me', MODE: '', TOKEN: 'secret', OTHER: 'x', TZ: 'Asia/Tokyo' }
const folders = { home: '/w/home', tmp: '/w/tmp', gpuIds: [] }

test('what is declared is taken from the host, unset stays unset, and nothing else comes through', () => {
  expect(toEnvironment({ spec: SPEC, host, ...folders })).toEqual({
    PATH: '/bin',
    HOME: '/w/home',
    TMPDIR: '/w/tmp',
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    MODE: '',
    TOKEN: 'secret',
    SEED: '1',
  })
})

test('given GPUs are shown to the stage; without a request an inherited limit holds', () => {
  const inherited = { ...host, CUDA_VISIBLE_DEVICES: '2,3' }

  expect(toEnvironment({ spec: SPEC, host: inherited, ...folders })['CUDA_VISIBLE_DEVICES']).toBe('2,3')
  expect(
    toEnvironment({ spec: SPEC, host: inherited, ...folders, gpuIds: ['3'] })['CUDA_VISIBLE_DEVICES'],
  ).toBe('3')
})

test('only secrets are secret', () => {
  expect(secretValues(SPEC, host)).toEqual(['secret'])
})

test('placeholders of known names are filled in wherever they stand; other braces are left', () => {
  const facts = {
    inputs: { data: 'data', folder: 'src' },
    outputs: { model: 'model.bin' },
    node: '/usr/bin/node',
  }

  expect(
    expandArgv(['{node}', '--in={in:data}', '{out:model}', '{in:nope}', '${x}', '{"a":1}'], facts),
  ).toEqual(['/usr/bin/node', '--in=in/data', 'out/model.bin', '{in:nope}', '${x}', '{"a":1}'])
})
