// pilot verify: everything in the store is hashed again. What is damaged is set aside; its producer runs again.

import type { Flags } from '../config.ts'
import { EXIT_CODES } from '../model/error.ts'
import { formatBytes } from '../report/format.ts'
import { isClean, type VerifyReport, verifyStore } from '../store/sweep.ts'
import { openInterrupts } from './interrupts.ts'
import { openProgress, openSession, print } from './session.ts'

export async function verifyCommand(flags: Flags & { readonly json?: boolean | undefined }): Promise<number> {
  using session = await openSession(flags)
  using interrupts = openInterrupts()
  using progress = openProgress('verified')
  const { stop } = interrupts
  const report = await verifyStore(session.project.store, { onProgress: progress.show, signal: stop })
  progress.clear()
  if (flags.json) print(JSON.stringify({ type: 'verify', clean: isClean(report), ...report }))
  else print(formatReport(report))
  return isClean(report) ? EXIT_CODES.ok : EXIT_CODES.environment
}

function formatReport(report: VerifyReport): string {
  const lines = [
    ...report.damagedTrees.map(
      ({ tree, path, expected, got }) =>
        `damaged  tree ${tree.slice(0, 12)}: ${path}, expected ${expected}, got ${got}`,
    ),
    ...report.missingTrees.map((tree) => `missing  tree ${tree.slice(0, 12)}`),
    ...report.damagedLogs.map((log) => `damaged  log ${log.slice(0, 12)}`),
    ...report.damagedResults.map((key) => `damaged  result of action ${key.slice(0, 12)}`),
    ...report.danglingResults.map((key) => `dropped  result of action ${key.slice(0, 12)}: its tree is gone`),
  ]
  const counts = `${report.trees} trees, ${report.results} results, ${report.logs} logs, ${formatBytes(report.bytes)}`
  if (lines.length === 0) return `all intact: ${counts}`
  return [
    ...lines,
    `looked at ${counts}`,
    'what was damaged is in quarantine/; run again, and its producers are executed',
  ].join('\n')
}
