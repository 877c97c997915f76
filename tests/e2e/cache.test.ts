// What is executed again and what is not: the stories users of other tools complain of.

import { appendFileSync, renameSync, rmSync, statSync, symlinkSync, utimesSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createProject } from '../rig/project.ts'
import { shellPipeline } from '../rig/shell-pipeline.ts'

const CHAIN = {
  'pipeline.ts': shellPipeline({
    first: { sh: 'grep -v "^#" "$a" > "$out"', inputs: { a: 'data/a.txt' } },
    second: { sh: 'wc -c < "$x" > "$out"', inputs: { x: 'first' } },
    third: { sh: 'cat "$x" "$y" > "$out"', inputs: { x: 'first', y: 'second' } },
  }),
  'data/a.txt': 'hello\n',
}

test('a second run executes nothing, and says so in its last line', async () => {
  using project = createProject(CHAIN)

  const first = await project.run()
  const second = await project.run()

  expect(first.outcomes).toEqual({ first: 'executed', second: 'executed', third: 'executed' })
  expect(project.read('artifacts/latest/third/out')).toBe('hello\n6\n')
  expect(second.outcomes).toEqual({ first: 'hit', second: 'hit', third: 'hit' })
  expect(second.end).toMatchObject({ type: 'run-end', exit: 0, executed: 0, hits: 3, restored: 0, failed: 0 })
  expect(second.code).toBe(0)
})

test('an unchanged output stops the rebuild downstream', async () => {
  using project = createProject(CHAIN)
  await project.run()
  project.write({ 'data/a.txt': '# a comment\nhello\n' })

  const ran = await project.run()

  expect(ran.outcomes).toEqual({ first: 'executed', second: 'hit', third: 'hit' })
})

test('going back to an old state restores its results', async () => {
  using project = createProject(CHAIN)
  await project.run()
  project.write({ 'data/a.txt': 'other\n' })
  await project.run()
  project.write({ 'data/a.txt': 'hello\n' })

  const ran = await project.run()

  expect(ran.end.executed).toBe(0)
  expect(project.read('artifacts/latest/third/out')).toBe('hello\n6\n')
})

test('touching a source does nothing; an edit of the same size and mtime is seen', async () => {
  using project = createProject(CHAIN)
  await project.run()
  utimesSync(project.path('data/a.txt'), new Date(), new Date())
  const touched = await project.run()
  const { atime, mtime } = statSync(project.path('data/a.txt'))
  project.write({ 'data/a.txt': 'jello\n' })
  utimesSync(project.path('data/a.txt'), atime, mtime)

  const edited = await project.run()

  expect(touched.end.executed).toBe(0)
  expect(edited.stageEnd('first').outcome).toBe('executed')
  expect(project.read('artifacts/latest/first/out')).toBe('jello\n')
})

test('an unrelated file, a comment in pipeline.ts and the name of a stage change no key', async () => {
  using project = createProject(CHAIN)
  const before = await project.run()
  project.write({
    'README.md': 'unrelated',
    'pipeline.ts': `// a comment\n${CHAIN['pipeline.ts'].replace('name: "second"', 'name: "renamed"')}`,
  })

  const after = await project.run()

  expect(after.end.executed).toBe(0)
  expect(after.stageEnd('renamed').actionDigest).toBe(before.stageEnd('second').actionDigest)
})

test('undeclared variables do not reach a stage; set, empty and unset are three results', async () => {
  using project = createProject({
    'pipeline.ts': shellPipeline({
      // biome-ignore lint/suspicious/noTemplateCurlyInString: shell text
      blind: { sh: 'echo "${SEED-unset}" > "$out"' },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: shell text
      seeing: { sh: 'echo "${SEED-unset}" > "$out"', more: "env: { keep: ['SEED'] }" },
    }),
  })
  const seen: string[] = []
  for (const SEED of ['a', '', undefined, 'a']) {
    await project.run([], { env: { SEED } })
    seen.push(project.read('artifacts/latest/seeing/out').trim())
  }

  const again = await project.run([], { env: { SEED: '' } })

  expect(seen).toEqual(['a', '', 'unset', 'a'])
  expect(project.read('artifacts/latest/blind/out')).toBe('unset\n')
  expect(again.end.executed).toBe(0)
})

test('an output edited by hand is noticed before it is used, set aside, and made again', async () => {
  using project = createProject(CHAIN)
  await project.run()
  appendFileSync(project.path('artifacts/latest/first/out'), 'forged\n')

  const ran = await project.run()

  expect(ran.outcomes).toEqual({ first: 'executed', second: 'hit', third: 'hit' })
  expect(ran.events.some((event) => event.type === 'warning' && event.code === 'damaged')).toBe(true)
  expect(project.read('artifacts/latest/first/out')).toBe('hello\n')
})

test('deleted outputs are not taken for up to date', async () => {
  using project = createProject(CHAIN)
  await project.run()
  rmSync(project.path('artifacts/latest'), { recursive: true })
  const relinked = await project.run()
  rmSync(project.path('artifacts/trees'), { recursive: true })

  const remade = await project.run()

  expect(relinked.end).toMatchObject({ executed: 0, hits: 3 })
  expect(remade.end.executed).toBe(3)
  expect(project.read('artifacts/latest/third/out')).toBe('hello\n6\n')
})

test('--force executes a stage and replaces its result', async () => {
  using project = createProject({ 'pipeline.ts': shellPipeline({ clock: { sh: 'date +%s%N > "$out"' } }) })
  await project.run()
  const before = project.read('artifacts/latest/clock/out')

  const ran = await project.run(['--force', 'clock'])

  expect(ran.outcomes).toEqual({ clock: 'executed' })
  expect(project.read('artifacts/latest/clock/out')).not.toBe(before)
  expect((await project.run()).end.executed).toBe(0)
})

test('what --dry-run says is what then happens', async () => {
  using project = createProject(CHAIN)
  await project.run()
  project.write({ 'data/a.txt': 'longer than before\n' })

  const plan = await project.pilot(['run', '--dry-run', '--json'])
  const ran = await project.run()

  const rows = plan.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(rows.map((row) => [row.stage, row.state])).toEqual([
    ['first', 'run'],
    ['second', 'wait'],
    ['third', 'wait'],
  ])
  expect(rows[0].reason).toBe('changed: inputs.a')
  expect(rows[0].actionDigest).toBe(ran.stageEnd('first').actionDigest)
  expect(ran.end.executed).toBe(3)
})

test('it works from a subdirectory, in a path with spaces and non-ASCII, and through a symlinked root', async () => {
  using project = createProject(CHAIN, 'päth with späces ☃ ')
  const first = await project.run([], { cwd: project.path('data') })
  const link = `${project.root} link`
  symlinkSync(project.root, link)

  const second = await project.run([], { cwd: link })
  rmSync(link)

  expect(first.end.executed).toBe(3)
  expect(second.end).toMatchObject({ executed: 0, hits: 3 })
})

test('a project moved elsewhere keeps its results', async () => {
  using project = createProject(CHAIN)
  await project.run()
  const moved = `${project.root}-moved`
  renameSync(project.root, moved)

  const ran = await project.run([], { cwd: moved })
  renameSync(moved, project.root)

  expect(ran.end).toMatchObject({ executed: 0, hits: 3 })
})

test('--to, --from and --only choose stages', async () => {
  using project = createProject(CHAIN)

  const to = await project.run(['--to', 'second'])
  const only = await project.run(['--only', 'third'])
  project.write({ 'data/a.txt': 'changed\n' })
  const blocked = await project.run(['--from', 'second'])

  expect(to.outcomes).toEqual({ first: 'executed', second: 'executed' })
  expect(only.outcomes).toEqual({ first: 'hit', second: 'hit', third: 'executed' })
  expect(blocked.stageEnd('first').failure?.message).toBe(
    'stage "first" is needed, has no result in the store, and is not selected',
  )
  expect(blocked.code).toBe(1)
})
