// Writing a batch of episodes: all of it valid and in place, or the old file untouched.
import { randomBytes } from 'node:crypto'
import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { toBlock } from './blocks.ts'
import { createFileChecker } from './check-file.ts'
import { trajectoryFaults } from './check-record.ts'
import { type Fault, TrajectoryError } from './fault.ts'
import type { Trajectory } from './schema.ts'
import { toRow } from './to-row.ts'

const FLUSH_CHARS = 1 << 20

/** Checks every record and the batch as a whole, then replaces the file in one step: written beside it, flushed to disk, renamed.
 *  A link is followed; the mode of an existing file is kept. Unsafe integers must be given as bigint to be exact.
 *  @returns the number of episodes written
 *  @throws TrajectoryError (its line is the number of the record) or the errors of node:fs; the old file then stays as it was */
export async function writeTrajectories(
  path: string,
  records: Iterable<unknown> | AsyncIterable<unknown>,
): Promise<number> {
  const target = await realpath(path).catch(() => path)
  const mode = await stat(target).then(
    (found) => found.mode & 0o7777,
    () => undefined,
  )
  const draft = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}.tmp`)
  try {
    const file = await open(draft, 'wx')
    let count: number
    try {
      if (mode !== undefined) await file.chmod(mode)
      count = await writeRows(file, records, path)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, target)
    await syncFolder(dirname(target))
    return count
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

async function writeRows(
  file: FileHandle,
  records: Iterable<unknown> | AsyncIterable<unknown>,
  path: string,
): Promise<number> {
  const checker = createFileChecker()
  const refuse = ([fault]: readonly Fault[]) => {
    if (fault !== undefined) throw new TrajectoryError(fault, path)
  }
  let count = 0
  let pending = ''
  for await (const record of records) {
    count++
    refuse(trajectoryFaults(record, count))
    const row = `${toRow(record as Trajectory)}\n` // no fault was found
    refuse(checker.check(toBlock([Buffer.from(row)]), false)) // the bytes themselves, and the rules of the whole file
    pending += row
    if (pending.length < FLUSH_CHARS) continue
    await file.appendFile(pending)
    pending = ''
  }
  refuse(checker.finish())
  await file.appendFile(pending)
  return count
}

/** The rename itself reaches the disk; file systems that cannot sync a folder are left alone. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync().catch(() => undefined)
  } finally {
    await folder.close()
  }
}
