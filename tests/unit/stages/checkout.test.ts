import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { source } from '../../../stages/checkout/source.ts'
import { createScratch, type Scratch } from '../../rig/scratch.ts'

const PROGRAM = fileURLToPath(new URL('../../../stages/checkout/checkout.ts', import.meta.url))
const PYTHON = fileURLToPath(new URL('../../../stages/launcher', import.meta.url))

interface CheckedOut {
  readonly code: number | null
  readonly stderr: string
}

/** Runs the stage's program; its outputs are `out/source` and `out/about.json`. */
function checkOut(scratch: Scratch, source: unknown, environment: NodeJS.ProcessEnv = {}): CheckedOut {
  for (const name of ['tmp', 'out']) mkdirSync(scratch.path(name), { recursive: true })
  const outputs = [scratch.path('out/source'), scratch.path('out/about.json')]
  const { status, stderr } = spawnSync(
    process.execPath,
    [PROGRAM, JSON.stringify(source), PYTHON, ...outputs],
    {
      cwd: scratch.root,
      encoding: 'utf8',
      env: { ...process.env, TMPDIR: scratch.path('tmp'), ...environment },
    },
  )
  return { code: status, stderr }
}

function readAbout(scratch: Scratch): unknown {
  return JSON.parse(readFileSync(scratch.path('out/about.json'), 'utf8'))
}

/** A repository with two commits. @returns its path, and both commits, the older first */
function createRepository(scratch: Scratch): { readonly url: string; readonly commits: readonly string[] } {
  const url = scratch.path('upstream')
  mkdirSync(url)
  const git = (...argv: readonly string[]): string =>
    execFileSync('git', ['-C', url, '-c', 'core.autocrlf=false', ...argv], {
      encoding: 'utf8',
      env: {
        ...process.env,
        ...{ GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
        ...{
          GIT_AUTHOR_NAME: 'a',
          GIT_AUTHOR_EMAIL: 'a@b',
          GIT_COMMITTER_NAME: 'a',
          GIT_COMMITTER_EMAIL: 'a@b',
        },
      },
    }).trim()
  const commit = (message: string): string => {
    git('add', '--all')
    git('commit', '--quiet', '--message', message)
    return git('rev-parse', 'HEAD')
  }
  git('init', '--quiet')
  scratch.write('upstream/dos.txt', 'one\r\ntwo\r\n')
  scratch.write('upstream/run.sh', '#!/bin/sh\n', 0o755)
  const first = commit('first')
  scratch.write('upstream/later.txt', 'later\n')
  return { url, commits: [first, commit('second')] }
}

test('a commit is checked out as it is, whatever line ends the user has set', () => {
  using scratch = createScratch()
  const { url, commits } = createRepository(scratch)
  const settings = scratch.write('gitconfig', '[core]\n\tautocrlf = true\n')

  const { code } = checkOut(
    scratch,
    { kind: 'git', url, commit: commits[1] },
    { GIT_CONFIG_GLOBAL: settings },
  )

  expect(code).toBe(0)
  expect(readdirSync(scratch.path('out/source')).sort()).toEqual(['dos.txt', 'later.txt', 'run.sh'])
  expect(readFileSync(scratch.path('out/source/dos.txt'), 'latin1')).toBe('one\r\ntwo\r\n')
  expect(readFileSync(scratch.path('out/source/later.txt'), 'latin1')).toBe('later\n')
  const tree = execFileSync('git', ['-C', url, 'rev-parse', 'HEAD^{tree}'], { encoding: 'utf8' }).trim()
  expect(readAbout(scratch)).toEqual({ kind: 'git', url, commit: commits[1], tree, files: 3 })
})

test('a commit that no branch points at is found, also where the server gives no single commits', () => {
  using scratch = createScratch()
  const { url, commits } = createRepository(scratch)
  // The first protocol of git serves advertised commits alone.
  const old = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'protocol.version', GIT_CONFIG_VALUE_0: '0' }

  const { code } = checkOut(scratch, { kind: 'git', url, commit: commits[0] }, old)

  expect(code).toBe(0)
  expect(readdirSync(scratch.path('out/source')).sort()).toEqual(['dos.txt', 'run.sh'])
})

test('an unknown commit is an error that names repository and commit', () => {
  using scratch = createScratch()
  const { url } = createRepository(scratch)
  const commit = 'c'.repeat(40)

  const { code, stderr } = checkOut(scratch, { kind: 'git', url, commit })

  expect(code).toBe(1)
  expect(stderr).toContain(`${url} could not be fetched, or lacks commit ${commit}`)
  expect(existsSync(scratch.path('out/about.json'))).toBe(false)
})

test('a git LFS pointer is refused, for it is not the file', () => {
  using scratch = createScratch()
  const { url } = createRepository(scratch)
  scratch.write('upstream/model.bin', 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n')
  const git = (...argv: readonly string[]) => execFileSync('git', ['-C', url, ...argv], { encoding: 'utf8' })
  git('add', 'model.bin')
  git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--quiet', '--message', 'pointer')

  const { code, stderr } = checkOut(scratch, { kind: 'git', url, commit: git('rev-parse', 'HEAD').trim() })

  expect(code).toBe(1)
  expect(stderr).toContain('the commit needs them: model.bin')
})

test('branches and short commits are no pins', () => {
  for (const commit of ['main', 'v1.0.2', 'abc1234']) {
    expect(source.safeParse({ kind: 'git', url: 'https://example.org/x', commit }).success).toBe(false)
  }
  expect(source.safeParse({ kind: 'archive', name: 'x', version: '1', sha256: 'abc' }).success).toBe(false)
})

/** A source distribution with its build backend inside, so that pip needs no index to look at it.
 *  @returns environment by which pip finds it, and its sha256 */
function createArchive(scratch: Scratch): {
  readonly environment: NodeJS.ProcessEnv
  readonly sha256: string
} {
  const top = 'dist/demo-1.0'
  const metadata = 'Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n'
  scratch.write(`${top}/PKG-INFO`, metadata)
  scratch.write(`${top}/demo.py`, 'print("demo")\n')
  scratch.write(
    `${top}/pyproject.toml`,
    '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
  )
  scratch.write(
    `${top}/backend.py`,
    `import os
def prepare_metadata_for_build_wheel(folder, settings=None):
    os.mkdir(os.path.join(folder, "demo-1.0.dist-info"))
    open(os.path.join(folder, "demo-1.0.dist-info", "METADATA"), "w").write(${JSON.stringify(metadata)})
    return "demo-1.0.dist-info"
def build_wheel(*_):
    raise SystemExit("nothing is built")
`,
  )
  const path = scratch.path('links/demo-1.0.tar.gz')
  mkdirSync(scratch.path('links'))
  execFileSync('tar', ['-czf', path, '-C', scratch.path('dist'), 'demo-1.0'])
  return {
    environment: { PIP_NO_INDEX: '1', PIP_FIND_LINKS: scratch.path('links'), PIP_CONFIG_FILE: '/dev/null' },
    sha256: createHash('sha256').update(readFileSync(path)).digest('hex'),
  }
}

test('an archive is unpacked without its top folder', () => {
  using scratch = createScratch()
  const { environment, sha256 } = createArchive(scratch)
  const pin = { kind: 'archive', name: 'demo', version: '1.0', sha256 }

  const { code, stderr } = checkOut(scratch, pin, environment)

  expect(stderr).toBe('')
  expect(code).toBe(0)
  expect(readFileSync(scratch.path('out/source/demo.py'), 'utf8')).toBe('print("demo")\n')
  expect(readAbout(scratch)).toEqual({ ...pin, files: 4 })
})

test('an archive with another hash is an error that says what was expected and what came', () => {
  using scratch = createScratch()
  const { environment, sha256 } = createArchive(scratch)
  const expected = '0'.repeat(64)

  const { code, stderr } = checkOut(
    scratch,
    { kind: 'archive', name: 'demo', version: '1.0', sha256: expected },
    environment,
  )

  expect(code).toBe(1)
  expect(stderr).toMatch(new RegExp(`Expected sha256 ${expected}\\s+Got\\s+${sha256}`))
  expect(stderr).toContain(`demo 1.0 with sha256 ${expected} could not be fetched`)
  expect(existsSync(scratch.path('out/source'))).toBe(false)
})
