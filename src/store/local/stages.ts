// Which action each stage last came to, and which actions a run used: for `why`, for the scheduler's weights and as
// roots of gc. An executed stage is written at once; hits are buffered, and a run whose stages were all hits on the
// set of the run before costs one row.

import type { Digest } from '../../model/digest.ts'
import { digestOf } from '../../model/digest.ts'
import type { StageRow } from '../../model/ports.ts'
import type { Database } from './database.ts'

export interface Stages {
  record(row: StageRow): void
  last(stage: string): StageRow | undefined
  flush(): void
}

export function openStages(db: Database): Stages {
  const rows = new Map<string, StageRow>()
  /** Rows of `stages` still to be written. */
  const buffered = new Map<string, StageRow>()
  let isDirty = false
  let isWritten = false

  function last(stage: string): StageRow | undefined {
    const row = db.get('SELECT stage, run, key, outcome, wall, at FROM stages WHERE stage = ?', stage)
    const written = row && toStageRow(row)
    const pending = buffered.get(stage)
    return pending ? { ...pending, wallMs: pending.wallMs || (written?.wallMs ?? 0) } : written
  }

  function flush(): void {
    if (!isDirty) return
    const list = [...rows.values()]
    const keys = toKeyList(list)
    const set = digestOf(keys)
    db.write(() => {
      const isSameSet = db.get("SELECT 1 FROM facts WHERE name = 'stages' AND value = ?", set) !== undefined
      if (!isSameSet) {
        for (const row of buffered.values()) write(row)
        db.run('INSERT OR IGNORE INTO key_sets VALUES (?, ?)', set, keys)
        db.run("INSERT OR REPLACE INTO facts VALUES ('stages', ?)", set)
        isWritten = false
      }
      writeRun(list, set)
    })
    buffered.clear()
    isDirty = false
  }

  function writeRun(list: readonly StageRow[], set: Digest): void {
    const newest = list.at(-1)
    if (!newest) return
    const good = list.every((row) => row.outcome !== 'failed') ? 1 : 0
    db.run(
      `INSERT INTO runs VALUES (?, ?, (SELECT coalesce(max(seq), 0) + 1 FROM runs), ?, ?)
       ON CONFLICT (id) DO UPDATE SET at = excluded.at, good = excluded.good, keys = excluded.keys`,
      newest.runId,
      newest.at,
      good,
      set,
    )
  }

  function write(row: StageRow): void {
    const { stage, runId, key, outcome, wallMs, at } = row
    // A hit was not executed and may bring no time: then the last one known stays.
    db.run(
      `INSERT INTO stages VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (stage) DO UPDATE
       SET run = excluded.run, key = excluded.key, outcome = excluded.outcome, at = excluded.at,
         wall = CASE WHEN excluded.wall > 0 THEN excluded.wall ELSE wall END`,
      stage,
      runId,
      key,
      outcome,
      wallMs,
      at,
    )
  }

  return {
    record(row) {
      isDirty = true
      rows.set(row.stage, row)
      if (row.outcome === 'hit' || row.outcome === 'restored') {
        buffered.set(row.stage, row)
        return
      }
      buffered.delete(row.stage)
      // From here on the table is no longer what the last flush left, should this process die before the next.
      if (!isWritten) db.run("DELETE FROM facts WHERE name = 'stages'")
      isWritten = true
      write(row)
    },
    last,
    flush,
  }
}

/** What the actions of a run were, as text: `<stage> <key>` a line, sorted. Failed ones left no result. */
function toKeyList(rows: readonly StageRow[]): string {
  const lines: string[] = []
  for (const row of rows) if (row.outcome !== 'failed') lines.push(`${row.stage} ${row.key}\n`)
  return lines.sort().join('')
}

function toStageRow(row: readonly unknown[]): StageRow {
  const [stage, runId, key, outcome, wallMs, at] = row
  // Typed by the schema and by `write` above.
  return {
    stage: String(stage),
    runId: String(runId),
    key: key as Digest,
    outcome: outcome as StageRow['outcome'],
    wallMs: Number(wallMs),
    at: String(at),
  }
}
