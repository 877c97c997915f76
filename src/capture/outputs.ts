// Collects what a stage left in its output folder: the declared is there and of its kind, and nothing else is.

import { readFileSync } from 'node:fs'
import { type Digest, digestOf } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import type { OutputRecord } from '../model/result.ts'
import type { OutputSpec, Stage } from '../model/stage.ts'
import { countFiles, sizeOf, type Tree, type TreeEntry, treeDigest } from '../model/tree.ts'
import { isChanging, OUTPUT } from './fault.ts'
import { hashTree } from './tree.ts'

export interface CollectOptions {
  readonly stage: Pick<Stage, 'name' | 'where'>
  /** Absolute path of the folder the stage wrote to. */
  readonly outDir: string
  readonly outputs: Readonly<Record<string, OutputSpec>>
  /** Path of the attempt's log, from the project root, for messages. */
  readonly log?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Collected {
  /** Of the whole output folder. */
  readonly tree: Tree
  readonly records: Readonly<Record<string, OutputRecord>>
}

/** Hashes the output folder once and holds it against the declaration.
 *  @throws PilotError `output-missing`, `output-kind`, `output-undeclared`, `output-invalid`, and those of `hashTree` */
export async function collectOutputs(options: CollectOptions): Promise<Collected> {
  const { outDir, outputs, signal } = options
  const blame = blamer(options)
  const tree = await hashTree(outDir, { signal }).catch((error: unknown) => {
    throw error instanceof PilotError ? withPlace(error, options) : error
  })
  const parts = partition(tree.entries, outputs)
  const records: Record<string, OutputRecord> = {}
  for (const [name, spec] of Object.entries(outputs)) records[name] = toRecord(spec, parts, blame)
  // After the missing: who misspells a path sees first what was expected.
  if (parts.undeclared.length > 0) throw blame(undeclared(parts.undeclared))
  for (const [name, spec] of Object.entries(outputs)) {
    const digest = records[name]?.digest
    if (spec.kind === 'json' && digest) checkJson(`${outDir}/${spec.path}`, spec, { digest, blame })
  }
  return { tree, records }
}

interface Fact {
  readonly code: string
  /** Goes on after the stage's name. */
  readonly what: string
  readonly hint: string
  readonly cause?: unknown
}

type Blamer = (fact: Fact) => PilotError

function blamer(options: CollectOptions): Blamer {
  return ({ what, ...fact }) =>
    new PilotError({
      ...fact,
      blame: 'stage',
      what: `stage "${options.stage.name}" ${what}`,
      where: placeOf(options),
    })
}

function placeOf({ stage, log }: CollectOptions): string | undefined {
  const place = stage.where()
  const parts = [place && `${place.file}:${place.line}`, log && `log ${log}`].filter(Boolean)
  return parts.length > 0 ? parts.join(', ') : undefined
}

function withPlace(error: PilotError, options: CollectOptions): PilotError {
  const { code, blame, hint, cause } = error
  const what = `stage "${options.stage.name}": ${error.message}`
  return new PilotError({ code, blame, what, where: placeOf(options), hint, cause })
}

interface Parts {
  /** Entry that stands at a declared path. */
  readonly at: ReadonlyMap<string, TreeEntry>
  /** What lies below a declared path, by that path; paths relative to it. */
  readonly below: ReadonlyMap<string, readonly TreeEntry[]>
  readonly undeclared: readonly string[]
}

/** Sorts the entries by the output they belong to, in one pass. */
function partition(entries: readonly TreeEntry[], outputs: CollectOptions['outputs']): Parts {
  const at = new Map<string, TreeEntry>()
  const below = new Map<string, TreeEntry[]>()
  const undeclared: string[] = []
  const ways = new Set<string>()
  for (const { path } of Object.values(outputs)) {
    below.set(path, [])
    for (const folder of foldersAbove(path)) ways.add(folder)
  }
  for (const entry of entries) {
    if (below.has(entry.path)) {
      at.set(entry.path, entry)
      continue
    }
    const home = foldersAbove(entry.path).find((folder) => below.has(folder))
    if (home !== undefined) below.get(home)?.push({ ...entry, path: entry.path.slice(home.length + 1) })
    else if (!(entry.type === 'dir' && ways.has(entry.path))) undeclared.push(entry.path)
  }
  return { at, below, undeclared }
}

/** `a/b/c` -> `a/b`, `a`. */
function foldersAbove(path: string): readonly string[] {
  const folders: string[] = []
  for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
    folders.push(path.slice(0, slash))
  }
  return folders
}

const SHOWN = 5

function undeclared(paths: readonly string[]): Fact {
  // A folder says enough for what is in it.
  const all = new Set(paths)
  const tops = paths.filter((path) => !foldersAbove(path).some((folder) => all.has(folder)))
  const names = tops.slice(0, SHOWN).map((path) => `"${path}"`)
  const more = tops.length > SHOWN ? ` and ${tops.length - SHOWN} more` : ''
  return {
    code: 'output-undeclared',
    what: `wrote ${names.join(', ')}${more} into its output folder, which it does not declare`,
    hint: 'declare it in `outputs`, or write it to the working directory, which is not kept',
  }
}

function toRecord(spec: OutputSpec, parts: Parts, blame: Blamer): OutputRecord {
  const entry = parts.at.get(spec.path)
  const isFolder = spec.kind === 'tree'
  const shown = isFolder ? `${spec.path}/` : spec.path
  if (!entry) {
    throw blame({
      code: 'output-missing',
      what: `finished but did not write "${shown}"`,
      hint: `write the ${isFolder ? 'folder' : 'file'}, or remove it from \`outputs\``,
    })
  }
  if (entry.type === (isFolder ? 'dir' : 'file')) return measure(entry, spec, parts)
  throw blame({
    code: 'output-kind',
    what: `declares "${spec.path}" as a ${isFolder ? 'folder' : 'file'} but wrote a ${NAMES[entry.type]}`,
    hint: 'write what is declared, or change its kind in `outputs`',
  })
}

const NAMES = { file: 'file', dir: 'folder', link: 'link' } as const

/** As `contentAt` of model/tree.ts would answer. */
function measure(entry: TreeEntry, { kind, path }: OutputSpec, parts: Parts): OutputRecord {
  if (entry.type === 'file') {
    return { kind, path, digest: entry.digest, sizeBytes: entry.sizeBytes, files: 1 }
  }
  const below = parts.below.get(path) ?? []
  return { kind, path, digest: treeDigest(below), sizeBytes: sizeOf(below), files: countFiles(below) }
}

/** Strict JSON (UTF-8, no NaN, no trailing comma) that its schema accepts. */
function checkJson(path: string, spec: OutputSpec, on: { digest: Digest; blame: Blamer }): void {
  const bytes = readFileSync(path)
  if (digestOf(bytes) !== on.digest) throw isChanging(OUTPUT, spec.path)
  const refuse = (how: string, hint: string, cause?: unknown): never => {
    throw on.blame({ code: 'output-invalid', what: `wrote "${spec.path}", which ${how}`, hint, cause })
  }
  if (bytes.length === 0) refuse('is empty', 'write the JSON before the stage ends')
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch (error) {
    refuse('is not JSON', 'JSON is UTF-8 and knows no NaN, Infinity, comments or trailing commas', error)
  }
  const wrong = spec.check?.(value)
  if (wrong !== undefined)
    refuse(`does not fit its schema: ${wrong}`, 'correct the stage, or the schema in `outputs`')
}
