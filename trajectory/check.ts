// Checking a file without building its episodes.
import { readBlocks } from './blocks.ts'
import { createFileChecker } from './check-file.ts'
import type { Fault } from './fault.ts'

export interface CheckOptions {
  /** Every fault, not only the first row's first. */
  readonly all?: boolean
}

/** Yields the faults of a file, the first one only unless `all`; in order of lines. None: the file is valid.
 *  @returns the number of sound episodes read
 *  @throws the errors of node:fs for a file that cannot be read */
export async function* checkTrajectories(
  path: string,
  options: CheckOptions = {},
): AsyncGenerator<Fault, number> {
  const checker = createFileChecker()
  const all = options.all === true
  for await (const block of readBlocks(path)) {
    for (const fault of checker.check(block, all)) {
      yield fault
      if (!all) return checker.episodes
    }
  }
  yield* checker.finish()
  return checker.episodes
}
