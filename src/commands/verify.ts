// pilot verify: everything in the store is hashed again. What is damaged is set aside; its producer runs again.

import { noRemote } from '../conduct/remote.ts'
import type { Flags } from '../config.ts'
import type { Digest } from '../model/digest.ts'
import { EXIT_CODES } from '../model/error.ts'
import { formatBytes } from '../report/format.ts'
import { verifyRemote } from '../store/remote/verify.ts'
import { isClean, type VerifyReport, verifyStore } from '../store/sweep.ts'
import { openInterrupts } from './interrupts.ts'
import { openProgress, openRemoteSession, openSession, print } from './session.ts'

interface VerifyFlags extends Flags {
  readonly json?: boolean | undefined
  /** The store beyond this machine. */
  readonly beyond?: boolean | undefined
  readonly heal?: boolean | undefined
}

export async function verifyCommand(flags: VerifyFlags): Promise<number> {
  if (flags.beyond || flags.heal) return verifyBeyond(flags)
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

async function verifyBeyond(flags: VerifyFlags): Promise<number> {
  using progress = openProgress('verified')
  using session = await openRemoteSession(flags, (_what, doneBytes) =>
    progress.show({ doneBytes, totalBytes: 0 }),
  )
  using interrupts = openInterrupts()
  if (!session.stores) throw noRemote()
  const { writer } = session.stores
  const { store } = session.project
  const heal = async (digest: Digest): Promise<boolean> => {
    const tree = store.readTree(digest)
    const folder = store.openTree(digest)
    if (!tree || folder === undefined) return false
    await writer.sendTree(tree, folder)
    return true
  }
  const report = await verifyRemote(writer, { heal: flags.heal ? heal : undefined, signal: interrupts.stop })
  progress.clear()
  const { results, trees, logs, damaged, healed, dropped } = report
  const isWell = damaged.length === 0 || (flags.heal === true && damaged.length > 0)
  if (flags.json)
    print(JSON.stringify({ type: 'verify', store: writer.name, clean: damaged.length === 0, ...report }))
  else {
    for (const key of damaged) print(`damaged  ${key}`)
    for (const tree of healed) print(`healed   tree ${tree.slice(0, 12)}, sent again from here`)
    for (const key of dropped) print(`dropped  result ${key.slice(0, 12)}: its producer runs again`)
    const counts = `${results} results, ${trees} trees, ${logs} logs in ${writer.name}`
    print(damaged.length === 0 ? `all intact: ${counts}` : `looked at ${counts}`)
  }
  return isWell ? EXIT_CODES.ok : EXIT_CODES.environment
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
