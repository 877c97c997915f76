// A queue that hands over everything that has come since the last look: the run's loop waits on it.

export interface Queue<T> {
  /** Adds an item; undefined is nothing to add. */
  push(item: T | undefined): void
  /** Makes the next `take` reject: something broke that is no stage's fault. */
  fail(error: unknown): void
  /** All items since the last call; waits for the first. */
  take(): Promise<readonly T[]>
}

export function openQueue<T>(): Queue<T> {
  let items: T[] = []
  let failure: { readonly error: unknown } | undefined
  let wake: (() => void) | undefined
  return {
    push(item) {
      if (item === undefined) return
      items.push(item)
      wake?.()
    },
    fail(error) {
      failure ??= { error }
      wake?.()
    },
    async take() {
      if (items.length === 0 && !failure) await new Promise<void>((resolve) => (wake = resolve))
      wake = undefined
      // Let every promise that is already settled add its item: one step of the scheduler for all of them.
      await new Promise((resolve) => setImmediate(resolve))
      if (failure) throw failure.error
      const taken = items
      items = []
      return taken
    },
  }
}
