// Files that live as long as a test file.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { checkTrajectories, type Fault } from '../../trajectory/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'trajectory-test-'))
let count = 0
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Path for a new file. */
export function scratchPath(name = 'file.jsonl'): string {
  return join(folder, `${count++}-${name}`)
}

/** Writes bytes to a new file. @returns its path */
export function scratchFile(content: string | Uint8Array): string {
  const path = scratchPath()
  writeFileSync(path, content)
  return path
}

/** Every fault of a file. */
export async function allFaults(path: string): Promise<Fault[]> {
  return await Array.fromAsync(checkTrajectories(path, { all: true }))
}

/** `rule line path` */
export function formatShort({ rule, line, path }: Pick<Fault, 'rule' | 'line' | 'path'>): string {
  return `${rule} ${line} ${path ?? 'null'}`
}
