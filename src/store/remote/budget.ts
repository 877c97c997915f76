// A bound on bytes in memory: transfers take from it before they read, and give back when they have written.

export interface Budget {
  /** Waits until so many bytes are free; more than there are at all waits for all of them. */
  take(bytes: number): Promise<Disposable>
}

export function openBudget(totalBytes: number): Budget {
  let free = totalBytes
  const queue: { readonly bytes: number; readonly go: () => void }[] = []
  const admit = (): void => {
    for (let next = queue[0]; next && next.bytes <= free; next = queue[0]) {
      queue.shift()
      free -= next.bytes
      next.go()
    }
  }
  return {
    async take(wanted) {
      const bytes = Math.min(wanted, totalBytes)
      await new Promise<void>((resolve) => {
        queue.push({ bytes, go: resolve })
        admit()
      })
      return {
        [Symbol.dispose]: () => {
          free += bytes
          admit()
        },
      }
    },
  }
}

/** Calls `act` on every item, so many at the same time; the first failure ends it. */
export async function inParallel<T>(
  items: readonly T[],
  limit: number,
  act: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0
  let failed = false
  const worker = async (): Promise<void> => {
    while (next < items.length && !failed) {
      const item = items[next++] as T
      try {
        await act(item)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
}
