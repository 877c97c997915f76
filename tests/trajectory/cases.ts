// The byte-exact cases of the contract: files in cases/, verdicts in expected.json. One case is too long to keep: it is made here.
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Rule } from '../../trajectory/index.ts'

/** The verdict on a case. */
export type Expected =
  | { readonly valid: true }
  | { readonly valid: false; readonly rule: Rule; readonly line: number; readonly path: string | null }

const FOLDER = new URL('cases/', import.meta.url)
const LONG_CASE = '035-very-long-line.jsonl'
const LONG_SHA256 = 'bfd5f26fb9a44dba9395c1db0773d2e1002586490d4b38ee4e07797d7f6f121e'

export const EXPECTED: Readonly<Record<string, Expected>> = JSON.parse(
  readFileSync(new URL('expected.json', import.meta.url), 'utf8'),
)

/** Path of a case. */
export function casePath(name: string): string {
  return name === LONG_CASE ? writeLongCase() : new URL(name, FOLDER).pathname
}

/** The text of the smallest valid case, its record and a way to change it. */
export const MINIMAL = readFileSync(new URL('001-minimal.jsonl', FOLDER), 'utf8').trimEnd()

/** One row of 200,000 prompt tokens and as many sampled ones, by its digest the very bytes of the case. */
function writeLongCase(): string {
  const count = 200_000
  const text = `${MINIMAL.replace('[1,2,3]', `[${Array.from({ length: count }, (_, i) => i).join(',')}]`)
    .replace('[4,5]', `[${Array(count).fill(7).join(',')}]`)
    .replace('[1,1]', `[${Array(count).fill(1).join(',')}]`)}\n`
  const digest = createHash('sha256').update(text).digest('hex')
  if (digest !== LONG_SHA256) throw new Error(`${LONG_CASE} has digest ${digest}, expected ${LONG_SHA256}`)
  const path = join(mkdtempSync(join(tmpdir(), 'trajectory-case-')), LONG_CASE)
  writeFileSync(path, text)
  return path
}
