// Results as one file, for machines that share no network: tar.zst, the same bytes for the same results.
// Order in the file: contents, trees, logs, results; so that whatever names something comes after it.

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  copyFileSync,
  createReadStream,
  createWriteStream,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import * as tar from 'tar-stream'
import { type Digest, digestOf } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import type { LocalStore } from '../model/ports.ts'
import type { ActionResult } from '../model/result.ts'
import { type Tree, type TreeEntry, treeDigest } from '../model/tree.ts'
import { decodeEntry, encodeEntry } from './remote/entry.ts'
import { isPlain } from './remote/manifest.ts'

const EPOCH = new Date(0)

/** Writes the results, with all they name, to a new file. @throws PilotError `no-outputs` for one whose tree is gone */
export async function exportResults(
  store: LocalStore,
  results: readonly ActionResult[],
  file: string,
): Promise<{ readonly results: number; readonly trees: number }> {
  const sorted = [...results].sort((a, b) => (a.actionDigest < b.actionDigest ? -1 : 1))
  const trees = new Map<Digest, { readonly tree: Tree; readonly folder: string }>()
  for (const { tree: digest, record } of sorted) {
    const folder = store.openTree(digest)
    const tree = store.readTree(digest)
    if (folder === undefined || !tree) throw gone(record.stage)
    trees.set(digest, { tree, folder })
  }
  const temp = `${file}.partial-${process.pid}`
  const pack = tar.pack()
  try {
    const written = pipeline(pack, createZstdCompress(), createWriteStream(temp, { flags: 'wx' }))
    await Promise.all([fill(pack, store, sorted, [...trees.values()]), written])
    const handle = openSync(temp, 'r')
    fsyncSync(handle)
    closeSync(handle)
    renameSync(temp, file)
  } catch (error) {
    pack.destroy()
    rmSync(temp, { force: true })
    throw error
  }
  return { results: sorted.length, trees: trees.size }
}

async function fill(
  pack: tar.Pack,
  store: LocalStore,
  results: readonly ActionResult[],
  trees: readonly { readonly tree: Tree; readonly folder: string }[],
): Promise<void> {
  const contents = new Map<Digest, { readonly path: string; readonly size: number }>()
  for (const { tree, folder } of trees) {
    for (const entry of tree.entries) {
      if (entry.type === 'file')
        contents.set(entry.digest, { path: `${folder}/${entry.path}`, size: entry.sizeBytes })
    }
  }
  for (const [digest, { path, size }] of [...contents].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const entry = pack.entry(header(`contents/${digest}`, size))
    if (size === 0) entry.end(Buffer.alloc(0))
    else createReadStream(path).pipe(entry as unknown as Writable)
    await once(entry, 'finish')
  }
  const byDigest = [...trees].sort((a, b) => (a.tree.digest < b.tree.digest ? -1 : 1))
  for (const { tree } of byDigest) await add(pack, `trees/${tree.digest}`, JSON.stringify(tree.entries))
  const logs = new Set(results.flatMap(({ record }) => (record.log ? [record.log.digest] : [])))
  for (const digest of [...logs].sort()) {
    const text = await store.getLog(digest)
    if (text) await add(pack, `logs/${digest}`, text)
  }
  for (const result of results) {
    await add(pack, `results/${result.actionDigest}`, encodeEntry({ result, attestation: null, fence: 0 }))
  }
  pack.finalize()
}

async function add(pack: tar.Pack, name: string, content: string | Buffer): Promise<void> {
  const bytes = Buffer.from(content)
  const entry = pack.entry(header(name, bytes.length))
  entry.end(bytes)
  await once(entry, 'finish')
}

function header(name: string, size: number): tar.Header {
  const nobody = { uid: 0, gid: 0, uname: '', gname: '' }
  return {
    name,
    size,
    mode: 0o644,
    mtime: EPOCH,
    type: 'file',
    linkname: '',
    devmajor: 0,
    devminor: 0,
    ...nobody,
  }
}

/** Takes in what `exportResults` wrote. Everything is held against its digest; what does not fit ends the import, and
 *  what was complete by then stays. @throws PilotError `invalid-bundle` */
export async function importResults(
  store: LocalStore,
  file: string,
): Promise<{ readonly results: number; readonly trees: number }> {
  const folder = store.makeTemp('import')
  const counts = { results: 0, trees: 0 }
  const extract = tar.extract()
  const read = pipeline(createReadStream(file), createZstdDecompress(), extract).catch((error: unknown) => {
    extract.destroy()
    throw (error as NodeJS.ErrnoException).code === 'ENOENT'
      ? missing(file)
      : invalid(file, 'it cannot be unpacked', error)
  })
  read.catch(() => undefined)
  try {
    for await (const entry of extract) {
      const [kind = '', name = ''] = entry.header.name.split('/')
      if (!/^[0-9a-f]{64}$/.test(name)) throw invalid(file, `"${entry.header.name}" is nothing of pilot's`)
      await take(store, folder, file, {
        kind,
        digest: name as Digest,
        stream: entry as AsyncIterable<Buffer>,
        counts,
      })
    }
  } catch (error) {
    await read
    throw error instanceof PilotError ? error : invalid(file, 'it cannot be read', error)
  }
  await read
  return counts
}

interface Taken {
  readonly kind: string
  readonly digest: Digest
  readonly stream: AsyncIterable<Buffer>
  readonly counts: { results: number; trees: number }
}

async function take(
  store: LocalStore,
  folder: string,
  file: string,
  { kind, digest, stream, counts }: Taken,
): Promise<void> {
  if (kind === 'contents') {
    const sum = createHash('sha256')
    const hashed = async function* (source: AsyncIterable<Buffer>) {
      for await (const chunk of source) {
        sum.update(chunk)
        yield chunk
      }
    }
    await pipeline(stream, hashed, createWriteStream(`${folder}/${digest}`))
    if (sum.digest('hex') !== digest) throw invalid(file, `content ${digest} is not what it is named after`)
    return
  }
  const bytes = Buffer.concat(await Array.fromAsync(stream))
  if (kind === 'trees') {
    const entries = parseEntries(bytes)
    if (!entries || treeDigest(entries) !== digest || !isPlain(entries))
      throw invalid(file, `tree ${digest} is not what it is named after`)
    const into = `${folder}/tree`
    build(entries, folder, into)
    store.adoptTree({ digest, entries }, into)
    counts.trees++
  } else if (kind === 'logs') {
    if (digestOf(bytes) !== digest) throw invalid(file, `log ${digest} is not what it is named after`)
    await store.putLog(digest, bytes)
  } else if (kind === 'results') {
    const entry = decodeEntry(digest, bytes)
    if (!entry || store.openTree(entry.result.tree) === undefined)
      throw invalid(file, `result ${digest} is not whole`)
    await store.putResult(entry.result, { replace: false })
    counts.results++
  } else throw invalid(file, `"${kind}" is nothing of pilot's`)
}

function parseEntries(bytes: Buffer): readonly TreeEntry[] | undefined {
  try {
    // Proved by the digest.
    return JSON.parse(bytes.toString('utf8')) as readonly TreeEntry[]
  } catch {
    return undefined
  }
}

function build(entries: readonly TreeEntry[], contents: string, into: string): void {
  mkdirSync(into)
  for (const entry of entries) {
    const path = `${into}/${entry.path}`
    if (entry.type === 'dir') mkdirSync(path, { mode: 0o700 })
    else if (entry.type === 'link') symlinkSync(entry.target, path)
    else {
      copyFileSync(`${contents}/${entry.digest}`, path)
      chmodSync(path, entry.mode)
    }
  }
  for (const entry of entries.toReversed()) {
    if (entry.type === 'dir') chmodSync(`${into}/${entry.path}`, entry.mode)
  }
}

function gone(stage: string): PilotError {
  return new PilotError({
    code: 'no-outputs',
    blame: 'user',
    what: `the outputs of stage "${stage}" are not here`,
    hint: `bring them here: pilot pull ${stage}, or pilot run --to ${stage}`,
  })
}

function missing(file: string): PilotError {
  return new PilotError({
    code: 'unreadable',
    blame: 'user',
    what: 'there is no such file',
    where: file,
    hint: 'correct the path',
  })
}

function invalid(file: string, how: string, cause?: unknown): PilotError {
  return new PilotError({
    code: 'invalid-bundle',
    blame: 'user',
    what: `the bundle is not whole: ${how}`,
    where: file,
    hint: 'copy it again, or export it anew',
    cause,
  })
}
