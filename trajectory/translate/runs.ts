// One long sequence with a mask, as trainers hold it -> the calls it was sampled in: each run of sampled tokens is one.

export interface Run {
  readonly start: number
  readonly end: number
}

/** Runs of 1 in a mask, as half-open ranges. */
export function runsOf(mask: readonly number[]): readonly Run[] {
  const runs: Run[] = []
  let start = -1
  mask.forEach((bit, i) => {
    if (bit === 1 && start < 0) start = i
    if (bit !== 1 && start >= 0) {
      runs.push({ start, end: i })
      start = -1
    }
  })
  if (start >= 0) runs.push({ start, end: mask.length })
  return runs
}
