// The folder an attempt runs in: made fresh, filled with links to its inputs, removed after capture.
//   <root>/work      the working directory: in/<as> -> immutable input, out/ for what the stage writes
//   <root>/home      HOME        <root>/tmp   TMPDIR: beside the working directory, so that never captured
// Links are absolute: the targets do not move while the stage runs, and a relative link would go astray when the
// project is reached through a symlinked root.

import { chmodSync, lstatSync, mkdirSync, readdirSync, rmdirSync, symlinkSync, unlinkSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface WorkdirOptions {
  /** Absolute path of a folder, fresh and empty or absent (its parent exists). */
  readonly root: string
  readonly inputs: readonly { readonly as: string; readonly target: string }[]
  /** Paths of the outputs under `out/`; their parent folders are made. */
  readonly outputs: readonly string[]
}

export interface Workdir extends AsyncDisposable {
  readonly root: string
  /** The working directory. */
  readonly cwd: string
  /** Where outputs are written. Capture may rename it away. */
  readonly out: string
  readonly home: string
  readonly tmp: string
  /** Removes the folder with all the stage left in it. Idempotent; never follows a link. */
  remove(): Promise<void>
}

/** Makes the folder of an attempt. */
export function openWorkdir(options: WorkdirOptions): Workdir {
  const { root } = options
  const cwd = `${root}/work`
  const folders = { cwd, in: `${cwd}/in`, out: `${cwd}/out`, home: `${root}/home`, tmp: `${root}/tmp` }
  mkdirSync(cwd, { recursive: true })
  mkdirSync(folders.out)
  mkdirSync(folders.home)
  mkdirSync(folders.tmp)
  if (options.inputs.length > 0) mkdirSync(folders.in)
  for (const input of options.inputs) symlinkSync(input.target, `${folders.in}/${input.as}`)
  const parents = new Set(options.outputs.map((path) => dirname(path)))
  parents.delete('.')
  for (const parent of parents) mkdirSync(`${folders.out}/${parent}`, { recursive: true })

  const remove = async (): Promise<void> => {
    if (removeUntouched(root, folders, options.inputs)) return
    await removeAll(root)
  }
  const { out, home, tmp } = folders
  return { root, cwd, out, home, tmp, remove, [Symbol.asyncDispose]: remove }
}

/** The common case, a stage that left only its outputs, in few calls and without a walk. False: more is there. */
function removeUntouched(
  root: string,
  folders: { cwd: string; in: string; out: string; home: string; tmp: string },
  inputs: WorkdirOptions['inputs'],
): boolean {
  try {
    rmdirSync(folders.tmp)
    rmdirSync(folders.home)
    for (const input of inputs) unlinkSync(`${folders.in}/${input.as}`)
    if (inputs.length > 0) rmdirSync(folders.in)
    rmdirSync(folders.cwd)
    rmdirSync(root)
    return true
  } catch {
    // Whatever it was - a file left, a folder gone, no permission - the walk deals with it.
    return false
  }
}

async function removeAll(root: string): Promise<void> {
  const options = { recursive: true, force: true, maxRetries: 3, retryDelay: 20 }
  try {
    await rm(root, options)
  } catch {
    // Folders the stage left read-only: only their owner's bits stand in the way.
    openFolders(root)
    await rm(root, options)
  }
}

/** Makes every folder below `path` writable for its owner. */
function openFolders(path: string): void {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) return
  chmodSync(path, 0o700)
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) openFolders(`${path}/${entry.name}`)
  }
}
