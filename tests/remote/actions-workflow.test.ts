// The action of this repository and the store behind it, in a workflow that a real runner executes.

import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ActRun, createActRepository } from '../rig/act.ts'

const JOB = fileURLToPath(new URL('../rig/actions-cache-job.ts', import.meta.url))

// The action is an ES module by the package it lies in.
const repository = createActRepository({}, 'tests/rig/workflows')
let ran: ActRun
beforeAll(async () => {
  ran = await repository.run('actions-cache.yml', 'push', { env: { NODE: process.execPath, JOB } })
}, 180_000)
afterAll(() => repository[Symbol.dispose]())

test('what a job sends through the action, another job fetches', () => {
  const [sent = ''] = ran.lines('send')

  expect(sent, ran.text).toMatch(/^sent [0-9a-f]{64}$/)
  expect(ran.lines('fetch')).toEqual([sent.replace('sent', 'fetched'), 'back is made by a job'])
})

test('a step that is no action is told what it lacks, also after the action ran', () => {
  expect(ran.lines('without'), ran.text).toEqual([
    process.version,
    'variables of the cache in GITHUB_ENV: 0',
    'error[actions-cache-unavailable]: there is no GitHub Actions cache here: ACTIONS_CACHE_URL and ACTIONS_RUNTIME_TOKEN are not set',
    '  hint    a runner gives them to actions and not to `run:` steps: call pilot by `uses: ./.github/actions/pilot`, or name another store',
    'it ended with 3',
  ])
})

test('the action takes its words apart as a shell does, and keeps its own inputs to itself', () => {
  const words = ['plain', "in 'two'", '$HOME \\n', 'a b', '"', '--flag=x y', '']

  expect(ran.lines('words'), ran.text).toEqual([JSON.stringify(words), '0'])
})

test('the action fails where its program does, or cannot be started, or is not spelled out', () => {
  const error = (what: RegExp) => new RegExp(`::error::${what.source}`)

  expect(ran.lines('failing'), ran.text).toEqual(['outcomes failure failure failure'])
  expect(ran.text).toMatch(error(/a quote in `args` is not closed: 'not closed/))
  expect(ran.text).toMatch(error(/no-such-program cannot be started in \S+: spawn no-such-program ENOENT/))
  expect(ran.code).toBe(0)
})
