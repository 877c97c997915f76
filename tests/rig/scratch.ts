// A temporary folder of one test, with files in it.

import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { removeAll } from './project.ts'

export interface Scratch extends Disposable {
  /** Absolute, links resolved. */
  readonly root: string
  path(...parts: readonly string[]): string
  /** Writes a file with the folders above it. @returns its absolute path */
  write(path: string, content: string | Buffer, mode?: number): string
}

export function createScratch(): Scratch {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'pilot-scratch-')))
  return {
    root,
    path: (...parts) => join(root, ...parts),
    write: (path, content, mode = 0o644) => {
      const file = join(root, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, content, { mode })
      return file
    },
    [Symbol.dispose]: () => removeAll(root),
  }
}
