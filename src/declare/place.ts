// Where in the user's files a declaration stands. The stack is captured when declared (about a microsecond) and
// formatted only when an error needs the line.

import { isAbsolute, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Place } from '../model/stage.ts'

export type CallSite = () => Place | undefined

const ENGINE_FRAME = /[\\/](src|dist[\\/]src)[\\/]declare[\\/]/
const FRAME = /\(?((?:file:\/\/)?\/[^()]*?):(\d+):\d+\)?$/

/** The first frame outside declare/ of the call now running. */
export function callSite(): CallSite {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 6
  const holder: { stack?: string } = {}
  Error.captureStackTrace(holder)
  Error.stackTraceLimit = limit
  return () => findPlace(holder.stack ?? '')
}

let projectRoot = ''

/** Says where the project is, before its pipeline is imported: declarations then speak of paths from there. */
export function setProjectRoot(root: string): void {
  projectRoot = root
}

/** An absolute path (`import.meta.dirname`) as a path from the project root, with `/`; any other path as it is. */
export function fromProjectRoot(path: string): string {
  if (!isAbsolute(path)) return path
  const inside = relative(projectRoot, path)
  return inside.startsWith('..') ? path : inside.split(sep).join('/')
}

function findPlace(stack: string): Place | undefined {
  for (const line of stack.split('\n').slice(1)) {
    const match = FRAME.exec(line)
    const file = match?.[1]
    if (!file || ENGINE_FRAME.test(file) || line.includes('node:internal')) continue
    return {
      file: fromProjectRoot(file.startsWith('file:') ? fileURLToPath(file) : file),
      line: Number(match[2]),
    }
  }
  return undefined
}
