// Several listeners as one; and the record of a run's events beside its logs.

import type { RunEvent } from '../model/event.ts'
import type { Reporter } from '../model/ports.ts'

export function fanOut(reporters: readonly Reporter[]): Reporter {
  return {
    on: (event) => {
      for (const reporter of reporters) reporter.on(event)
    },
    close: async () => {
      for (const reporter of reporters) await reporter.close()
    },
  }
}

/** Keeps the events of a run that did something; of one that only found hits there is nothing to keep.
 *  @param append writes to the record, which it makes at the first call */
export function recordEvents(append: (lines: string) => void): Reporter {
  let held: RunEvent[] | undefined = []
  const write = (events: readonly RunEvent[]) => {
    if (events.length > 0) append(events.map((event) => `${JSON.stringify(event)}\n`).join(''))
  }
  return {
    on: (event) => {
      if (event.type === 'stage-output' || event.type === 'progress') return
      if (!held) {
        write([event])
        return
      }
      held.push(event)
      if (event.type !== 'stage-start' && !(event.type === 'stage-end' && event.failure)) return
      write(held)
      held = undefined
    },
    close: async () => undefined,
  }
}
