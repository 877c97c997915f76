// Lines out of a stream of text: the framing between pilot and its guard.

import type { Duplex } from 'node:stream'

/** Calls `onLine` for each whole line that comes; an unfinished last one is dropped. */
export function readLines(from: Duplex, onLine: (line: string) => void): void {
  let rest = ''
  from.setEncoding('utf8')
  from.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  })
}
