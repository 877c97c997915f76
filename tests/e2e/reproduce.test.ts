// pilot reproduce: a stage is executed again and what comes out compared; what is kept stays.

import { expect, test } from 'vitest'
import { createProject } from '../rig/project.ts'
import { shellPipeline } from '../rig/shell-pipeline.ts'

const PIPELINE = shellPipeline({
  steady: { sh: 'cat "$a" > "$out"', inputs: { a: 'data/a.txt' } },
  wandering: { sh: 'cat "$x" > "$out"; cat /proc/sys/kernel/random/uuid >> "$out"', inputs: { x: 'steady' } },
  timed: {
    sh: `printf '{"at": "%s", "loss": 1.0}' "$(cat /proc/sys/kernel/random/uuid)" > "$out"`,
    more: "outputs: { out: file('out.json') },",
  },
})

test('what comes out the same is reproduced', async () => {
  using project = createProject({ 'pipeline.ts': PIPELINE, 'data/a.txt': 'hello\n' })
  await project.run()

  const ran = await project.pilot(['reproduce', 'steady'])

  expect(ran.stdout).toBe('steady: reproduced: 1 of 1 files byte for byte, 0 within what was allowed\n')
  expect(ran.stderr).toContain('done  steady')
  expect(ran.code).toBe(0)
})

test('what does not is told with its first difference, and what was kept stays', async () => {
  using project = createProject({ 'pipeline.ts': PIPELINE, 'data/a.txt': 'hello\n' })
  await project.run()
  const before = project.read('artifacts/latest/wandering/out')

  const ran = await project.pilot(['reproduce', 'wandering'])
  const again = await project.run()

  expect(ran.code).toBe(1)
  expect(ran.stdout).toMatch(/not reproduced: 1 of 1 files differ, the first is out: byte \d+/)
  expect(Number(/byte (\d+)/.exec(ran.stdout)?.[1])).toBeGreaterThanOrEqual('hello\n'.length)
  expect(again.end).toMatchObject({ executed: 0, hits: 3 })
  expect(project.read('artifacts/latest/wandering/out')).toBe(before)
})

test('fields that may differ are named', async () => {
  using project = createProject({ 'pipeline.ts': PIPELINE, 'data/a.txt': 'hello\n' })
  await project.run()

  const strict = await project.pilot(['reproduce', 'timed'])
  const told = await project.pilot(['reproduce', 'timed', '--ignore', 'at', '--json'])

  expect(strict.stdout).toMatch(/out\.json: \$\.at: "/)
  expect(strict.code).toBe(1)
  expect(JSON.parse(told.stdout)).toMatchObject({
    reproduced: true,
    files: [{ path: 'out.json', verdict: 'close' }],
  })
  expect(told.code).toBe(0)
})

test('what is not kept cannot be compared with', async () => {
  using project = createProject({ 'pipeline.ts': PIPELINE, 'data/a.txt': 'hello\n' })

  const ran = await project.pilot(['reproduce', 'steady'])

  expect(ran.code).toBe(2)
  expect(ran.stderr).toMatch(/nothing is kept of stage "steady"/)
})
