// pilot doctor on real projects: it looks at this machine, and judges it by what the stages need.

import { chmodSync, mkdirSync, readdirSync, symlinkSync, utimesSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Finding } from '../../src/report/doctor.ts'
import { createProject, type TestProject } from '../rig/project.ts'
import { shellPipeline } from '../rig/shell-pipeline.ts'

/** PATH of a folder with these programs of the test's own, and git and sh. */
function pathWith(project: TestProject, programs: Readonly<Record<string, string>>): string {
  project.write(Object.fromEntries(Object.entries(programs).map(([name, text]) => [`bin/${name}`, text])))
  for (const name of Object.keys(programs)) chmodSync(project.path('bin', name), 0o755)
  mkdirSync(project.path('bin'), { recursive: true })
  symlinkSync('/bin/sh', project.path('bin', 'sh'))
  return project.path('bin')
}

async function findings(project: TestProject, env: Readonly<Record<string, string>>) {
  const ran = await project.pilot(['doctor', '--json'], { env })
  const all = ran.stdout.split('\n').flatMap((line): Finding[] => (line === '' ? [] : [JSON.parse(line)]))
  return { ...ran, of: (what: string) => all.find((finding) => finding.what === what) }
}

/** What nvidia-smi says on a machine with one card. */
const NVIDIA_SMI = `#!/bin/sh
case "$*" in
  *compute_cap*) echo 'NVIDIA H200, 570.86.15, 9.0, 143771' ;;
  *index*) echo 0 ;;
  *) echo '    CUDA Version                          : 12.8' ;;
esac
`

const GPU_STAGE = shellPipeline({
  train: { sh: 'echo 1 > "$out"', more: 'resources: { gpus: 1 }' },
})

test('a GPU stage fails the machine without a driver, and passes the one with it', async () => {
  using project = createProject({ 'pipeline.ts': GPU_STAGE })
  using other = createProject({ 'pipeline.ts': GPU_STAGE })

  const without = await findings(project, { PATH: pathWith(project, {}) })
  const there = await findings(other, { PATH: pathWith(other, { 'nvidia-smi': NVIDIA_SMI }) })

  expect(without.code).toBe(3)
  expect(without.of('gpu')).toMatchObject({ state: 'fail', found: 'none, and stage "train" asks for one' })
  expect(there.code).toBe(0)
  expect(there.of('gpu')?.found).toBe('NVIDIA H200 151 GB')
  expect(there.of('driver')?.found).toBe('570.86.15')
  expect(there.of('cuda')?.found).toMatch(/^12\.8 /)
  expect(there.of('capability')?.found).toBe('9.0')
})

test('a program is told by its absolute path and by starting it: a shim that exits 127 is passed over', async () => {
  using project = createProject({ 'pipeline.ts': shellPipeline({ a: { sh: 'echo 1 > "$out"' } }) })
  const path = pathWith(project, { python3: '#!/bin/sh\nexit 127\n' })
  project.write({ 'real/python3': '#!/bin/sh\necho Python 3.12.9\n' })
  chmodSync(project.path('real/python3'), 0o755)

  const found = await findings(project, { PATH: `${path}:${project.path('real')}` })

  expect(found.of('python')).toEqual({
    state: 'ok',
    what: 'python',
    found: `Python 3.12.9  ${project.path('real/python3')}`,
  })
})

test('a declared tool that is missing is a failure where nothing has been opened yet', async () => {
  using project = createProject({
    'pipeline.ts': shellPipeline({
      a: { sh: 'echo 1 > "$out"', more: "tools: { nothing: ['no-such-tool', '-V'] }" },
    }),
  })

  const found = await findings(project, {})

  expect(found.code).toBe(3)
  expect(found.of('no-such-tool')).toMatchObject({ state: 'fail', found: 'not on PATH' })
  expect(readdirSync(project.root)).toEqual(['pipeline.ts'])
})

test('the checks of a pipeline are run, and what they say on stderr is what to do', async () => {
  using project = createProject({
    'pipeline.ts': `import { definePipeline } from 'hessian-pilot'
export default definePipeline({
  checks: () => ({
    model: ['sh', '-c', 'echo "weights of 2 GB"'],
    python: ['sh', '-c', 'echo "no 3.12 here" >&2; echo "install 3.12" >&2; exit 1'],
  }),
  stages: () => [],
})
`,
  })

  const found = await findings(project, {})

  expect(found.code).toBe(3)
  expect(found.of('model')).toEqual({ state: 'ok', what: 'model', found: 'weights of 2 GB' })
  expect(found.of('python')).toEqual({
    ...{ state: 'fail', what: 'python', found: 'no 3.12 here', mend: 'install 3.12' },
  })
})

test('a clock behind the project’s own files is noticed', async () => {
  using project = createProject({ 'pipeline.ts': shellPipeline({ a: { sh: 'echo 1 > "$out"' } }) })
  const later = new Date(Date.now() + 86_400_000)
  utimesSync(project.path('pipeline.ts'), later, later)

  const found = await findings(project, {})

  expect(found.of('clock')).toMatchObject({ state: 'warn', mend: expect.stringContaining('set the clock') })
})

test('outside a project the machine is told all the same; the store’s password is not', async () => {
  using project = createProject({})

  const plain = await project.pilot(['doctor'], {
    env: { PILOT_STORE: 's3://me:secret@host/bucket?sig=secret' },
  })

  expect(plain.code).toBe(0)
  expect(plain.stdout).toMatch(/^warn {2}project /m)
  expect(plain.stdout).toMatch(/^ok {4}node +v\d/m)
  expect(plain.stdout).toContain('s3://***@host/bucket?***')
  expect(plain.stdout).not.toContain('secret')
})
