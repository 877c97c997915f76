// A git commit through the git CLI, as it is in the repository: no line ends changed, no hooks, no user's settings.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GitSource } from './source.ts'

/** Checks the commit out into the new folder `into`, without `.git`.
 *  @returns the tree git names by the commit. @throws Error where the repository lacks the commit */
export function checkoutGit(
  { url, commit }: GitSource,
  into: string,
): { readonly tree: string; readonly files: number } {
  const work = mkdtempSync(join(tmpdir(), 'git-'))
  const git = (...argv: readonly string[]): string =>
    execFileSync(
      'git',
      ['-C', work, '-c', 'core.autocrlf=false', '-c', 'core.hooksPath=/dev/null', ...argv],
      {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_NOSYSTEM: '1', GIT_LFS_SKIP_SMUDGE: '1' },
      },
    )
  git('init', '--quiet')
  fetchCommit(git, url, commit)
  git('-c', 'advice.detachedHead=false', 'checkout', '--quiet', commit)
  const head = git('rev-parse', 'HEAD').trim()
  if (head !== commit) throw new Error(`${url}: expected commit ${commit}, got ${head}`)
  git('submodule', '--quiet', 'update', '--init', '--recursive')
  const tree = git('rev-parse', 'HEAD^{tree}').trim()
  refusePointers(
    work,
    git('ls-files')
      .split('\n')
      .filter((path) => path !== ''),
  )
  rmSync(join(work, '.git'), { recursive: true })
  renameSync(work, into)
  return { tree, files: readdirSync(into, { recursive: true }).length }
}

type Git = (...argv: readonly string[]) => string

/** The commit alone where the server gives single commits, else all that it has: the commit may be on any branch. */
function fetchCommit(git: Git, url: string, commit: string): void {
  try {
    git('fetch', '--quiet', '--depth', '1', url, commit)
    return
  } catch {
    // A server may refuse commits that no branch names; a dumb one cannot give a single commit.
  }
  try {
    git('fetch', '--quiet', url, '+refs/*:refs/remotes/origin/*')
    git('cat-file', '-e', `${commit}^{commit}`)
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : ''
    throw new Error(`${url} could not be fetched, or lacks commit ${commit}${said && `:\n${said}`}`)
  }
}

const POINTER = 'version https://git-lfs.github.com/spec/'

/** A pointer in the place of a file is a tree that looks right and is not. */
function refusePointers(work: string, paths: readonly string[]): void {
  const pointers = paths.filter((path) => isPointer(join(work, path)))
  if (pointers.length > 0) {
    throw new Error(
      `git LFS files are not fetched by this stage, and the commit needs them: ${pointers.slice(0, 5).join(', ')}`,
    )
  }
}

function isPointer(path: string): boolean {
  try {
    return readFileSync(path).subarray(0, POINTER.length).toString('latin1') === POINTER
  } catch {
    // A link or a submodule's folder.
    return false
  }
}
