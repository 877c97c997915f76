// The stream for programs: one event a line, as it is; the last line is `run-end`. Its schema: report/schema.ts.

import type { Reporter } from '../model/ports.ts'

/** What stages print is in their logs, not here. @param write takes whole lines */
export function jsonReporter(write: (text: string) => void): Reporter {
  // Hits come by the thousand in one turn of the loop: they go out as one write.
  let pending = ''
  const flush = () => {
    if (pending !== '') write(pending)
    pending = ''
  }
  return {
    on: (event) => {
      if (event.type === 'stage-output') return
      if (pending === '') setImmediate(flush)
      pending += `${JSON.stringify(event)}\n`
    },
    close: async () => flush(),
  }
}
