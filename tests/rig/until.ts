import { setTimeout as delay } from 'node:timers/promises'

/** Resolves when it has come true; rejects when it has not within 20 s. */
export async function until(isTrue: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error('it did not come true within 20 s')
    await delay(10)
  }
}
