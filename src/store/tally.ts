// What gc counts, here and beyond this machine: how much goes and how much stays, by reason.

export interface CollectRow<Reason extends string = string> {
  readonly reason: Reason
  readonly count: number
  /** Of file content here; of objects, as they rest, beyond this machine. */
  readonly bytes: number
}

export interface CollectReport<Reason extends string = string> {
  readonly removed: readonly CollectRow<Reason>[]
  readonly kept: readonly CollectRow<Reason>[]
  readonly removedBytes: number
}

export type CollectRows<Reason extends string = string> = Map<Reason, CollectRow<Reason>>

export function count<Reason extends string>(rows: CollectRows<Reason>, reason: Reason, bytes: number): void {
  const row = rows.get(reason)
  rows.set(reason, { reason, count: (row?.count ?? 0) + 1, bytes: (row?.bytes ?? 0) + bytes })
}

export function toReport<Reason extends string>(
  removed: CollectRows<Reason>,
  kept: CollectRows<Reason>,
): CollectReport<Reason> {
  const rows = [...removed.values()]
  return {
    removed: rows,
    kept: [...kept.values()],
    removedBytes: rows.reduce((sum, row) => sum + row.bytes, 0),
  }
}
