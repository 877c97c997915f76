// The command line itself: its lines, its help, its exit codes, its views.

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { eventSchema } from '../../src/report/schema.ts'
import { createProject } from '../rig/project.ts'
import { shellPipeline } from '../rig/shell-pipeline.ts'

const CHAIN = {
  'pipeline.ts': shellPipeline({
    first: { sh: 'cat "$a" > "$out"; echo said', inputs: { a: 'data/a.txt' } },
    second: { sh: 'wc -c < "$x" > "$out"', inputs: { x: 'first' } },
  }),
  'data/a.txt': 'hello\n',
}

test('every line of --json fits the schema that pilot events prints', async () => {
  using project = createProject({
    ...CHAIN,
    'pipeline.ts': shellPipeline({
      good: { sh: 'echo said; echo 1 > "$out"' },
      bad: { sh: 'exit 3' },
      after: { sh: 'cat "$x" > "$out"', inputs: { x: 'bad' } },
    }),
  })

  const ran = await project.run(['--keep-going'])
  const again = await project.run(['--keep-going'])
  const printed = await project.pilot(['events'])

  for (const event of [...ran.events, ...again.events]) expect(eventSchema.parse(event)).toEqual(event)
  expect(ran.end).toMatchObject({ type: 'run-end', exit: 1, executed: 1, hits: 0, restored: 0, failed: 1 })
  expect(Object.keys(ran.end)).toEqual(expect.arrayContaining(['wallMs']))
  expect(ran.stageEnd('good')).toMatchObject({
    outcome: 'executed',
    actionDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
  expect(ran.stageEnd('good').outputs['out']).toMatchObject({ kind: 'file', path: 'out', sizeBytes: 2 })
  expect(ran.outcomes).toEqual({ good: 'executed', bad: 'failed', after: 'skipped' })
  expect(again.outcomes).toEqual({ good: 'hit', bad: 'failed', after: 'skipped' })
  expect(JSON.parse(printed.stdout)).toHaveProperty('oneOf')
})

const COMMANDS = [
  ...[
    'run',
    'plan',
    'status',
    'why',
    'log',
    'out',
    'reproduce',
    'graph',
    'verify',
    'gc',
    'pin',
    'unpin',
    'init',
    'lock',
    'events',
  ],
  ...['trajectory', 'doctor', 'push', 'pull', 'cache', 'export', 'import', 'gate'],
]

test.each(COMMANDS)('the help of %s fits a screen and shows an example', async (command) => {
  using project = createProject({})

  const help = await project.pilot(command === 'trajectory' ? ['help', command] : [command, '--help'])

  expect(help.code).toBe(0)
  expect(help.stdout).toMatch(/Example:\n {2}\S/)
  expect(help.stdout.trimEnd().split('\n').length).toBeLessThanOrEqual(24)
})

test('the help names every command and its exit codes', async () => {
  using project = createProject({})

  const help = await project.pilot(['--help'])

  for (const command of COMMANDS) expect(help.stdout).toContain(`  ${command} `)
  expect(help.stdout.trimEnd().split('\n').length).toBeLessThanOrEqual(24)
  expect(help.stdout).toMatch(/Exit codes: 0 done, 1 a stage failed, 2 .*3 .*4 .*130 /s)
})

test.each([
  [['rum'], /unknown command 'rum'.*Did you mean run\?/s],
  [['run', 'reproduce', '--jbos', '2'], /unknown option '--jbos'.*Did you mean --jobs\?/s],
  [['run', 'frist'], /there is no stage "frist"; did you mean "first"\?/],
  [['why', 'thrid'], /there is no stage "thrid"/],
  [['run', '--jobs', '0'], /whole number above 0/],
  [['run', '--recipe', 'x'], /takes no recipe/],
])('%j is the user’s mistake, in words', async (argv, expected) => {
  using project = createProject(CHAIN)

  const ran = await project.pilot(argv)

  expect(ran.stderr).toMatch(expected)
  expect(ran.code).toBe(2)
})

test('no project here is said with what to do', async () => {
  using project = createProject({})

  const ran = await project.pilot(['run'])

  expect(ran.code).toBe(2)
  expect(ran.stderr).toMatch(/there is no pipeline\.ts in .*\n.*hint.*pilot init/s)
})

test('status, why, log, out and graph tell of what ran', async () => {
  using project = createProject(CHAIN)
  await project.run()
  writeFileSync(project.path('data/a.txt'), 'longer than before\n')

  const [status, why, log, out, graph] = await Promise.all(
    [['status'], ['why', 'first'], ['log', 'first'], ['out', 'second'], ['graph', '--format', 'mermaid']].map(
      (argv) => project.pilot(argv),
    ),
  )

  expect(status?.stdout).toMatch(/first +run +executed/)
  expect(status?.stdout).toMatch(/second +wait +executed/)
  expect(why?.stdout).toMatch(/inputs\.a: [0-9a-f]{12} -> [0-9a-f]{12}/)
  expect(log?.stdout, log?.stderr).toMatch(/out\| said\n/)
  expect(out?.stdout).toBe('artifacts/latest/second/out\n')
  expect(graph?.stdout).toBe('flowchart LR\n  s0["first"]\n  s1["second"]\n  s0 --> s1\n')
})

test('log -f prints what a running stage says, and ends with it', async () => {
  using project = createProject({
    'pipeline.ts': shellPipeline({
      talker: {
        sh: 'echo before; while [ ! -e "$MEET/go" ]; do sleep 0.02; done; echo after; echo 1 > "$out"',
        more: "env: { pass: ['MEET'] }",
      },
    }),
  })
  const running = project.start(['run', '--json'])
  await running.line(/"stage-start"/)
  const following = project.start(['log', 'talker', '-f'])
  await following.line(/out\| before/)
  writeFileSync(project.path('go'), '')

  const followed = await following.finished
  await running.finished

  expect(followed.stdout).toMatch(/out\| before\n.*out\| after\n$/s)
  expect(followed.code).toBe(0)
})

test('out --copy gives a writable copy and overwrites nothing', async () => {
  using project = createProject(CHAIN)
  await project.run()

  const copied = await project.pilot(['out', 'first', '--copy', 'mine'])
  writeFileSync(project.path('mine/out'), 'edited\n')
  const again = await project.pilot(['out', 'first', '--copy', 'mine'])

  expect(copied.code).toBe(0)
  expect(again.code).toBe(2)
  expect(project.read('mine/out')).toBe('edited\n')
  expect(project.read('artifacts/latest/first/out')).toBe('hello\n')
})

test('gc keeps what is in use, says what goes by reason, and a pin keeps the rest', async () => {
  using project = createProject(CHAIN)
  await project.run()
  const pinned = await project.pilot(['pin', 'old'])
  for (const text of ['two\n', 'three\n']) {
    writeFileSync(project.path('data/a.txt'), text)
    await project.run()
  }

  const dry = await project.pilot(['gc', '--dry-run', '--keep-runs', '1', '--grace', '0'])
  const collected = await project.pilot(['gc', '--keep-runs', '1', '--grace', '0'])
  const current = await project.run()
  writeFileSync(project.path('data/a.txt'), 'hello\n')
  const old = await project.run()
  writeFileSync(project.path('data/a.txt'), 'two\n')
  const gone = await project.run()

  expect(pinned.stdout).toBe('pinned 2 results as old\n')
  expect(dry.stdout).toMatch(/would be deleted +unreachable result/)
  expect(collected.code).toBe(0)
  expect(current.end.executed).toBe(0)
  expect(old.end.executed).toBe(0)
  expect(gone.end.executed).toBeGreaterThan(0)
})

test('provenance names the outputs, the inputs and the builder', async () => {
  using project = createProject(CHAIN)
  const ran = await project.run()

  const out = await project.pilot(['out', 'first', '--provenance'])

  const statement = JSON.parse(out.stdout)
  expect(statement._type).toBe('https://in-toto.io/Statement/v1')
  const digest = ran.stageEnd('first').outputs['out']?.digest
  expect(statement.subject).toContainEqual(
    expect.objectContaining({ name: 'out', digest: { sha256: digest } }),
  )
})

test('plain lines have no colour unless it is wanted', async () => {
  using project = createProject(CHAIN)

  const plain = await project.pilot(['run'], { env: { NO_COLOR: undefined } })
  const forced = await project.pilot(['run', '--force', 'first'], {
    env: { NO_COLOR: undefined, FORCE_COLOR: '1' },
  })

  expect(plain.stdout).not.toContain('\u001b[')
  expect(plain.stdout).toMatch(/^run {3}first\ndone {2}first/)
  expect(plain.stdout).toMatch(/pilot: 2 executed, 0 hits, 0 restored, 0 failed in /)
  expect(forced.stdout).toContain('\u001b[')
})

const SCRIPT = spawnSync('script', ['--version']).error === undefined

test.skipIf(!SCRIPT)(
  'on a terminal there is a live view, and with NO_COLOR none of its colours',
  async () => {
    using project = createProject(CHAIN)
    const bin = fileURLToPath(new URL('../../bin/pilot.js', import.meta.url))
    const environment = { ...process.env, CI: '', TERM: 'xterm', NO_COLOR: '1' }
    const command = `stty cols 80 rows 24; '${process.execPath}' '${bin}' run`

    const ran = spawnSync('script', ['-qec', command, '/dev/null'], {
      cwd: project.root,
      env: environment,
      encoding: 'utf8',
      input: '',
    })

    expect(ran.status).toBe(0)
    // It hides the cursor to draw in place, and shows times and sizes.
    expect(ran.stdout).toContain('\u001b[?25l')
    expect(ran.stdout).toMatch(/first {2}\d+\.\d s {2}6 B/)
    expect(ran.stdout).toMatch(/pilot: 2 executed/)
    expect(ran.stdout).not.toContain('\u001b[32m')
  },
)

test('completions are printed for a shell, and complete stage commands', async () => {
  using project = createProject({})

  const script = await project.pilot(['complete', 'bash'])
  const words = await project.pilot(['complete', '--', 'gra'])

  expect(script.code).toBe(0)
  expect(script.stdout).toContain('pilot')
  expect(words.stdout).toContain('graph')
})

test('a reader that goes away is no error', async () => {
  using project = createProject(CHAIN)
  const bin = fileURLToPath(new URL('../../bin/pilot.js', import.meta.url))

  const ran = spawnSync('sh', ['-c', `'${process.execPath}' '${bin}' events | head -n 1`], {
    cwd: project.root,
    encoding: 'utf8',
  })

  expect(ran.stdout).toBe('{\n')
  expect(ran.stderr).toBe('')
})

test('many commands at once do not get in each other’s way', async () => {
  using project = createProject(CHAIN)
  await project.run()
  const commands = [['status'], ['why', 'first'], ['log', 'first'], ['out', 'second'], ['plan'], ['verify']]

  for (let round = 0; round < 8; round++) {
    const ended = await Promise.all(commands.map((argv) => project.pilot(argv)))

    for (const { code, stderr } of ended) expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  }
})
