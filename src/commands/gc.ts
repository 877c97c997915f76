// pilot gc: deletes what no root reaches, and says how much by reason.

import { noRemote } from '../conduct/remote.ts'
import type { Flags } from '../config.ts'
import { PilotError } from '../model/error.ts'
import { formatBytes } from '../report/format.ts'
import { formatTable } from '../report/status.ts'
import { collect } from '../store/collect.ts'
import { collectRemote } from '../store/remote/collect.ts'
import { openRemoteSession, openSession, print } from './session.ts'

export interface GcFlags extends Flags {
  readonly dryRun?: boolean | undefined
  readonly keepRuns: number
  /** Hours. */
  readonly grace: number
  readonly json?: boolean | undefined
  /** The store beyond this machine. */
  readonly beyond?: boolean | undefined
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
  const dryRun = flags.dryRun ?? false
  if (flags.beyond) return collectBeyond(flags, dryRun)
  using session = await openSession(flags)
  const report = await collect(session.project.store, {
    keepRuns: flags.keepRuns,
    graceMs: flags.grace * MS_PER_HOUR,
    dryRun,
    now: Date.now,
  })
  return tell(report, dryRun, flags)
}

async function collectBeyond(flags: GcFlags, dryRun: boolean): Promise<number> {
  using session = await openRemoteSession(flags)
  if (!session.stores) throw noRemote()
  const { keepRuns, grace } = flags
  const report = await collectRemote(session.stores.writer.objects, {
    keepRuns,
    graceMs: grace * MS_PER_HOUR,
    dryRun,
  })
  return tell(report, dryRun, flags)
}

interface Report {
  readonly removed: readonly Row[]
  readonly kept: readonly Row[]
  readonly removedBytes: number
}

interface Row {
  readonly reason: string
  readonly count: number
  readonly bytes: number
}

function tell(report: Report, dryRun: boolean, flags: GcFlags): number {
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

function toCells(what: string, rows: readonly Row[]): readonly (readonly string[])[] {
  return rows.map(({ reason, count, bytes }) => [what, reason, String(count), formatBytes(bytes)])
}
