// checkout.ts SOURCE LAUNCHER OUT ABOUT: brings an upstream source at its pin, checks it against the pin, and unpacks it
// into OUT. SOURCE is JSON, as the stage's parameters; ABOUT says what was brought.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { checkoutGit } from './git.ts'
import type { ArchiveSource, Source } from './source.ts'

const [text = '', launcher = '', out = '', about = ''] = process.argv.slice(2)

try {
  // Checked by the stage's schema.
  const source = JSON.parse(text) as Source
  const facts = source.kind === 'git' ? checkoutGit(source, resolve(out)) : await unpackArchive(source)
  writeFileSync(about, `${JSON.stringify({ ...source, ...facts }, null, 2)}\n`)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
}

/** Fetches a source distribution by name and hash from the index that pip is set to, and unpacks it. */
async function unpackArchive({ name, version, sha256 }: ArchiveSource): Promise<{ readonly files: number }> {
  const temp = mkdtempSync(join(tmpdir(), 'archive-'))
  const path = await download({ kind: 'archive', name, version, sha256 }, temp)
  const got = createHash('sha256').update(readFileSync(path)).digest('hex')
  if (got !== sha256) throw new Error(`${name} ${version}: expected sha256 ${sha256}, got ${got}`)
  const unpacked = join(temp, 'unpacked')
  mkdirSync(unpacked)
  // GNU and BSD tar refuse names that leave the folder.
  execFileSync('tar', ['-xzf', path, '-C', unpacked, '--no-same-owner'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const [top, ...more] = readdirSync(unpacked)
  if (top === undefined || more.length > 0)
    throw new Error(`${name} ${version}: one top folder was expected in the archive`)
  renameSync(join(unpacked, top), resolve(out))
  return { files: readdirSync(resolve(out), { recursive: true }).length }
}

async function download({ name, version, sha256 }: ArchiveSource, into: string): Promise<string> {
  const interpreter = (await import(
    `${resolve(launcher)}/interpreter.ts`
  )) as typeof import('../launcher/interpreter.ts')
  const { explainMissing, findInterpreter, searchFacts } = interpreter
  const found = findInterpreter('3', searchFacts(process.env['PILOT_MACHINE_DIR'] ?? ''), 'pip')
  if (!found.interpreter) throw new Error(explainMissing('3 with pip', found.looked))
  const requirements = join(into, 'requirements.txt')
  writeFileSync(requirements, `${name}==${version} --hash=sha256:${sha256}\n`)
  const pip =
    `-m pip download -qq --no-deps --require-hashes --ignore-requires-python --no-binary ${name}`.split(' ')
  console.log(`fetching ${name} ${version} with the pip of ${found.interpreter.path}`)
  try {
    execFileSync(
      found.interpreter.path,
      [...pip, '--requirement', requirements, '--dest', join(into, 'files')],
      {
        stdio: ['ignore', 'inherit', 'inherit'],
      },
    )
  } catch {
    throw new Error(
      `${name} ${version} with sha256 ${sha256} could not be fetched: pip's own words are above`,
    )
  }
  const [file] = readdirSync(join(into, 'files')).filter((entry) => entry.endsWith('.tar.gz'))
  if (file === undefined) throw new Error(`pip fetched no .tar.gz of ${name} ${version}`)
  return join(into, 'files', file)
}
