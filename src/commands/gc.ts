// pilot gc: deletes what no root reaches, and says how much by reason.

import type { Flags } from '../config.ts'
import { PilotError } from '../model/error.ts'
import { formatBytes } from '../report/format.ts'
import { formatTable } from '../report/status.ts'
import { type CollectRow, collect } from '../store/collect.ts'
import { openSession, print } from './session.ts'

export interface GcFlags extends Flags {
  readonly dryRun?: boolean | undefined
  readonly keepRuns: number
  /** Hours. */
  readonly grace: number
  readonly json?: boolean | undefined
}

const MS_PER_HOUR = 3_600_000

export async function gcCommand(flags: GcFlags): Promise<number> {
  if (!(flags.grace >= 0)) {
    throw new PilotError({
      code: 'invalid-flag',
      blame: 'user',
      what: '--grace is no number of hours',
      hint: 'a number from 0 on',
    })
  }
  using session = await openSession(flags)
  const dryRun = flags.dryRun ?? false
  const report = await collect(session.project.store, {
    keepRuns: flags.keepRuns,
    graceMs: flags.grace * MS_PER_HOUR,
    dryRun,
    now: Date.now,
  })
  if (flags.json) {
    print(JSON.stringify({ type: 'gc', dryRun, ...report }))
    return 0
  }
  const would = dryRun ? 'would be deleted' : 'deleted'
  const rows = [...toCells(would, report.removed), ...toCells('kept', report.kept)]
  if (rows.length > 0) print(formatTable(rows))
  print(`${formatBytes(report.removedBytes)} ${would}`)
  return 0
}

function toCells(what: string, rows: readonly CollectRow[]): readonly (readonly string[])[] {
  return rows.map(({ reason, count, bytes }) => [what, reason, String(count), formatBytes(bytes)])
}
