// The lock maker on the locks of the pilot. The index is asked: what it has decides nothing, for the locks hold.

import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { createScratch, type Scratch } from '../rig/scratch.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

function copyLocks(scratch: Scratch): void {
  cpSync(join(ROOT, 'locks'), scratch.path('locks'), { recursive: true })
}

function lock(scratch: Scratch, folder: string, flags: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
  const program = join(ROOT, 'stages/python/lock.ts')
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, folder, ...flags], {
    cwd: scratch.root,
    encoding: 'utf8',
    env: { ...process.env, ...env },
  })
  return { status, stdout, stderr }
}

function contents(folder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
  )
}

test.each(['calculator', 'tools'])('locks/%s made again is the same bytes', (name) => {
  using scratch = createScratch()
  copyLocks(scratch)

  const made = lock(scratch, `locks/${name}`)

  expect(made).toEqual({ status: 0, stdout: '', stderr: '' })
  expect(contents(scratch.path('locks', name))).toEqual(contents(join(ROOT, 'locks', name)))
})

test('the check names what is out of date and writes nothing; making it again mends it', () => {
  using scratch = createScratch()
  copyLocks(scratch)
  const folder = scratch.path('locks/calculator')
  const good = contents(folder)
  scratch.write('locks/calculator/requirements.txt', 'jax==0.1\n')
  rmSync(join(folder, 'requirements-test.txt'))
  const spoilt = contents(folder)

  const check = lock(scratch, 'locks/calculator', ['--check'])
  expect(check).toEqual({
    status: 1,
    stdout: `out of date: locks/calculator/requirements.txt
out of date: locks/calculator/requirements-test.txt
`,
    stderr: '',
  })
  expect(contents(folder)).toEqual(spoilt)

  expect(lock(scratch, 'locks/calculator').status).toBe(0)
  expect(contents(folder)).toEqual(good)
})

test('a lock is the same behind an index by another name', () => {
  using scratch = createScratch()
  copyLocks(scratch)
  const text = readFileSync(scratch.path('locks/calculator/uv.lock'), 'utf8')
  const registry = /registry = "([^"]+)"/.exec(text)?.[1] ?? ''
  // Another text for the same place: to uv, that is another index.
  const env = { UV_DEFAULT_INDEX: `${registry}/` }

  expect(lock(scratch, 'locks/calculator', ['--check'], env)).toEqual({ status: 0, stdout: '', stderr: '' })
  expect(registry).not.toBe('')
})
