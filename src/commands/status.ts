// pilot status: what is up to date, and how each stage ended last.

import { dryRun } from '../conduct/dry-run.ts'
import type { Flags } from '../config.ts'
import { formatStatus, type StatusRow } from '../report/status.ts'
import { openSession, print } from './session.ts'

export async function statusCommand(flags: Flags & { readonly json?: boolean | undefined }): Promise<number> {
  using session = await openSession(flags)
  const { store } = session.project
  const rows: StatusRow[] = (await dryRun(session.project)).rows.map((row) => {
    const last = store.lastOf(row.stage)
    const outputs =
      row.actionDigest && row.state === 'hit' ? store.lookup(row.actionDigest)?.outputs : undefined
    const sizeBytes = outputs && Object.values(outputs).reduce((sum, output) => sum + output.sizeBytes, 0)
    return { ...row, last, sizeBytes }
  })
  if (flags.json) for (const row of rows) print(JSON.stringify(row))
  else print(formatStatus(rows))
  return 0
}
