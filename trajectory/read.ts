// Reading a file as typed episodes.
import { readBlocks } from './blocks.ts'
import { createFileChecker } from './check-file.ts'
import { TrajectoryError } from './fault.ts'
import type { Trajectory } from './schema.ts'

/** Yields the episodes of a file, each checked, with those before it, against every rule. Episodes already given out when a later
 *  row is faulty are from a file that must not be used: finish reading before you rely on them.
 *  @throws TrajectoryError at the first fault; the errors of node:fs for a file that cannot be read */
export async function* readTrajectories(path: string): AsyncGenerator<Trajectory, void> {
  const checker = createFileChecker()
  for await (const block of readBlocks(path)) {
    const sound: Trajectory[] = []
    const [fault] = checker.check(block, false, (_line, read) => sound.push(read()))
    yield* sound
    if (fault !== undefined) throw new TrajectoryError(fault, path)
  }
  const [fault] = checker.finish()
  if (fault !== undefined) throw new TrajectoryError(fault, path)
}
