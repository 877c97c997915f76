// Faults of files, short.
import { checkTrajectories, type Fault } from '../../trajectory/index.ts'

/** Every fault of a file. */
export async function allFaults(path: string): Promise<Fault[]> {
  return await Array.fromAsync(checkTrajectories(path, { all: true }))
}

/** `rule line path` */
export function formatShort({ rule, line, path }: Pick<Fault, 'rule' | 'line' | 'path'>): string {
  return `${rule} ${line} ${path ?? 'null'}`
}
