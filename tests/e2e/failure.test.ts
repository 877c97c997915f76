// What happens when something breaks: nothing half-made is kept, and the text says what, where and what to do.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createProject } from '../rig/project.ts'
import { shellPipeline } from '../rig/shell-pipeline.ts'

/** Lets a stage and the test meet at files in the project's folder. */
const MEET = "env: { pass: ['MEET'] }"

test('a broken stage fails the run with its last log lines; after the fix only it and what follows run', async () => {
  const stages = (sh: string) => ({
    'pipeline.ts': shellPipeline({
      before: { sh: 'echo 1 > "$out"' },
      broken: { sh, inputs: { x: 'before' } },
      after: { sh: 'cat "$x" > "$out"', inputs: { x: 'broken' } },
    }),
  })
  using project = createProject(stages('echo working; echo no such tensor >&2; exit 3'))

  const failed = await project.pilot(['run'])
  const json = await project.run()
  project.write(stages('echo mended > "$out"'))
  const mended = await project.run()

  expect(failed.code).toBe(1)
  expect(failed.stdout + failed.stderr).toMatch(/broken/)
  expect(failed.stdout + failed.stderr).toContain('no such tensor')
  expect(json.outcomes).toEqual({ before: 'hit', broken: 'failed', after: 'skipped' })
  expect(json.stageEnd('broken').failure).toMatchObject({ class: 'stage', exitCode: 3 })
  expect(json.stageEnd('broken').where).toMatch(/^pipeline\.ts:\d+$/)
  expect(project.read(json.stageEnd('broken').log ?? '')).toContain('no such tensor')
  expect(mended.outcomes).toEqual({ before: 'hit', broken: 'executed', after: 'executed' })
})

test('exit 0 without the declared output is a failure, and nothing is kept', async () => {
  using project = createProject({ 'pipeline.ts': shellPipeline({ lazy: { sh: 'exit 0' } }) })

  const first = await project.run()
  const second = await project.run()

  expect(first.stageEnd('lazy').failure).toMatchObject({ class: 'missing-output' })
  expect(first.stageEnd('lazy').failure?.message).toBe('stage "lazy" finished but did not write "out"')
  expect(second.outcomes).toEqual({ lazy: 'failed' })
  expect(first.code).toBe(1)
})

test('an output that was not declared is refused by name', async () => {
  using project = createProject({
    'pipeline.ts': shellPipeline({ messy: { sh: 'echo 1 > "$out"; echo 2 > out/stray' } }),
  })

  const ran = await project.run()

  expect(ran.stageEnd('messy').failure?.message).toContain('stray')
})

test('a source edited while its stage runs: nothing is published, and the next run executes', async () => {
  using project = createProject({
    'pipeline.ts': shellPipeline({
      slow: {
        sh: 'echo started; while [ ! -e "$MEET/go" ]; do sleep 0.02; done; cat "$a" > "$out"',
        inputs: { a: 'data/a.txt' },
        more: MEET,
      },
    }),
    'data/a.txt': 'before\n',
  })
  const started = project.start(['run', '--json'])
  await started.line(/"stage-start"/)
  writeFileSync(project.path('data/a.txt'), 'after\n')
  writeFileSync(project.path('go'), '')

  const ended = await started.finished
  const again = await project.run()

  expect(ended.stdout).toContain('changed while stage \\"slow\\" ran')
  expect(ended.code).toBe(3)
  expect(again.outcomes).toEqual({ slow: 'executed' })
  expect(project.read('artifacts/latest/slow/out')).toBe('after\n')
})

test('a stage killed because another failed leaves nothing that counts as its result', async () => {
  using project = createProject({
    'pipeline.ts': shellPipeline({
      writer: {
        sh: 'echo half > "$out"; echo ready > "$MEET/ready"; sleep 30; echo whole >> "$out"',
        more: MEET,
      },
      breaker: { sh: 'while [ ! -e "$MEET/ready" ]; do sleep 0.02; done; exit 1', more: MEET },
    }),
  })
  const started = project.start(['run', '--json', '-j', '2'])
  await started.line(/"stage":"breaker".*"failed"/)
  started.process.kill('SIGINT')

  const ended = await started.finished
  const plan = await project.pilot(['plan', '--json'])

  expect(ended.code).toBe(130)
  expect(plan.stdout).toMatch(/"stage":"writer".*"state":"run"/)
})

test('--keep-going goes on with what does not depend on the failed stage', async () => {
  using project = createProject({
    'pipeline.ts': shellPipeline({
      bad: { sh: 'exit 1' },
      poor: { sh: 'cat "$x" > "$out"', inputs: { x: 'bad' } },
      good: { sh: 'echo 1 > "$out"' },
      fine: { sh: 'cat "$x" > "$out"', inputs: { x: 'good' } },
    }),
  })

  const ran = await project.run(['--keep-going', '-j', '1'])

  expect(ran.outcomes).toEqual({ bad: 'failed', poor: 'skipped', good: 'executed', fine: 'executed' })
  expect(ran.stageEnd('poor').reason).toBe('stage "bad" failed')
  expect(ran.code).toBe(1)
})

test('two runs at once both end well, and each stage ran once', async () => {
  using project = createProject({
    'pipeline.ts': shellPipeline({
      slow: { sh: 'sleep 0.5; echo x >> "$PILOT_MACHINE_DIR/../../count"; echo 1 > "$out"' },
      next: { sh: 'echo x >> "$PILOT_MACHINE_DIR/../../count"; cat "$x" > "$out"', inputs: { x: 'slow' } },
    }),
  })

  const [one, two] = await Promise.all([project.run(), project.run()])

  expect([one.code, two.code]).toEqual([0, 0])
  expect(project.read('count')).toBe('x\nx\n')
  expect(one.end.executed + two.end.executed).toBe(2)
  expect([...one.events, ...two.events].some((event) => event.type === 'stage-wait')).toBe(true)
})

test('an interrupt ends what runs, exits 130, and leaves the store usable', async () => {
  using project = createProject({
    'pipeline.ts': shellPipeline({ long: { sh: 'echo begun; sleep 60; echo 1 > "$out"' } }),
  })
  const started = project.start(['run', '--json'])
  await started.line(/"stage-start"/)
  started.process.kill('SIGINT')

  const ended = await started.finished
  project.write({ 'pipeline.ts': shellPipeline({ long: { sh: 'echo 1 > "$out"' } }) })
  const again = await project.run()

  expect(ended.code).toBe(130)
  expect(again.outcomes).toEqual({ long: 'executed' })
})

test('a second interrupt kills a stage that ignores the first', async () => {
  using project = createProject({
    'pipeline.ts': shellPipeline({
      stubborn: {
        sh: 'trap "" TERM INT; echo deaf > "$MEET/deaf"; while :; do sleep 0.1; done',
        more: MEET,
      },
    }),
  })
  const started = project.start(['run', '--json'])
  await started.line(/"stage-start"/)
  while (!existsSync(project.path('deaf'))) await new Promise((resolve) => setTimeout(resolve, 10))
  started.process.kill('SIGINT')
  await started.line(/SIGINT/)
  const from = Date.now()
  started.process.kill('SIGINT')

  const ended = await started.finished

  expect(ended.code).toBe(130)
  expect(Date.now() - from).toBeLessThan(4_000)
})

test('a secret is in no log, no record and no event', async () => {
  const secret = 'hunter2-correct-horse'
  using project = createProject({
    'pipeline.ts': shellPipeline({
      leaky: {
        sh: 'echo "token $TOKEN"; printf "%s" "$TOKEN" | base64; printf hunter2-; printf "correct-horse\\n"; echo 1 > "$out"',
        more: "env: { secrets: ['TOKEN'] }",
      },
    }),
  })

  const ran = await project.run([], { env: { TOKEN: secret } })
  const again = await project.run([], { env: { TOKEN: 'another-token-value' } })

  const log = project.read(ran.stageEnd('leaky').log ?? '')
  expect(log).toContain('token ')
  for (const text of [log, ran.stdout, ran.stderr, ...storeTexts(project.path('artifacts'))]) {
    expect(text).not.toContain(secret)
    expect(text).not.toContain(Buffer.from(secret).toString('base64'))
  }
  expect(again.end.executed).toBe(0)
})

test.each([
  ['a syntax mistake', 'const x = ;\n', /pipeline\.ts:1/],
  ['what stripping cannot do', 'const a = 1\nenum X { A }\n', /pipeline\.ts:2/],
  ['a missing module', "import './nowhere.ts'\n", /nowhere\.ts/],
  ['a call that throws', "const a = 1\nthrow new Error('at load')\n", /pipeline\.ts:2/],
  ['no default export', 'export const a = 1\n', /no pipeline as its default export/],
])('%s in pipeline.ts is told with file, line and hint', async (_, text, expected) => {
  using project = createProject({ 'pipeline.ts': text })

  const ended = await project.pilot(['run'])

  expect(ended.code).toBe(2)
  expect(ended.stderr).toMatch(expected)
  expect(ended.stderr).toMatch(/ {2}hint {4}/)
})

test('a missing source is refused before anything runs', async () => {
  using project = createProject({
    'pipeline.ts': shellPipeline({
      first: { sh: 'echo 1 > "$out"' },
      second: { sh: 'cat "$a" > "$out"', inputs: { a: 'data/none.txt', x: 'first' } },
    }),
  })

  const ended = await project.pilot(['run'])

  expect(ended.code).toBe(2)
  expect(ended.stderr).toContain('data/none.txt')
  expect(existsSync(project.path('artifacts/latest/first'))).toBe(false)
})

test('outside a project the message says how to start one', async () => {
  using project = createProject({ 'note.txt': '' })

  const ended = await project.pilot(['run'])

  expect(ended).toMatchObject({ code: 2, stdout: '' })
  expect(ended.stderr).toMatch(
    /^error\[no-pipeline\]: there is no pipeline\.ts in .*\n {2}hint {4}start one here: pilot init\n$/,
  )
})

/** Every byte of the store, as latin1 text. */
function* storeTexts(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) yield readFileSync(`${entry.parentPath}/${entry.name}`, 'latin1')
  }
}

test('more isolation than there is, is refused before anything runs', async () => {
  using project = createProject({
    'pipeline.ts': shellPipeline({ shut: { sh: 'echo 1 > "$out"', more: "isolation: 'sandbox'" } }),
  })

  const ran = await project.pilot(['run'])

  expect(ran.code).toBe(3)
  expect(ran.stderr).toMatch(/stage "shut" asks for isolation "sandbox".*\n.*where +pipeline\.ts:2/)
})

const SMALL = mountSmall()
afterAll(() => {
  if (SMALL !== undefined) spawnSync('umount', [SMALL])
})

test.skipIf(SMALL === undefined)(
  'a full disk is the machine’s fault, in words; with room again the run goes on',
  async () => {
    const folder = SMALL ?? ''
    using project = createProject({})
    const pipeline = (bytes: number): string =>
      shellPipeline({
        small: { sh: 'echo 1 > "$out"' },
        big: { sh: `head -c ${bytes} /dev/zero > "$out"`, more: 'retries: 0,' },
      })
    writeFileSync(join(folder, 'pipeline.ts'), pipeline(20_000_000))
    const full = await project.pilot(['run', '--keep-going', '--jobs', '1'], { cwd: folder })
    writeFileSync(join(folder, 'pipeline.ts'), pipeline(1_000))
    const mended = await project.run([], { cwd: folder })

    expect(full.code).toBe(3)
    expect(full.stdout + full.stderr).toMatch(
      /error\[(infra|disk-full)\].*(ENOSPC|disk is full).*hint +free some space/s,
    )
    expect(full.stdout + full.stderr).not.toMatch(/\n {4}at /)
    expect(mended.outcomes).toEqual({ small: 'hit', big: 'executed' })
  },
)

/** A file system of a few MiB, where this user may mount one. */
function mountSmall(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'pilot-small-'))
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', folder])
  return mounted.status === 0 ? folder : undefined
}
