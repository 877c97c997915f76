// What every command on a project begins with: configuration, a run id, the project opened, warnings on stderr.

import { randomBytes } from 'node:crypto'
import { openProject, type Project } from '../conduct/project.ts'
import { openRemoteStores, type RemoteStores } from '../conduct/remote.ts'
import { type Flags, readConfig } from '../config.ts'
import { formatBytes, formatMs } from '../report/format.ts'

export interface Session extends Disposable {
  readonly project: Project
  readonly runId: string
  readonly now: () => Date
}

/** @param onWarning where warnings go; stderr by default */
export async function openSession(
  flags: Flags,
  stages: readonly string[] = [],
  onWarning: (code: string, message: string) => void = warnOnStderr,
  onProgress?: (what: string, doneBytes: number, totalBytes: number) => void,
): Promise<Session> {
  const now = () => new Date()
  const runId = toRunId(now())
  const project = await openProject(readConfig(flags, stages), { runId, onWarning, onProgress })
  return { project, runId, now, [Symbol.dispose]: () => project[Symbol.dispose]() }
}

export interface RemoteSession extends Session {
  /** Undefined where no store beyond this machine is named. */
  readonly stores: RemoteStores | undefined
}

/** A session for looking after the store beyond this machine: its namespaces are at hand, and no run goes through it. */
export async function openRemoteSession(
  flags: Flags,
  onProgress?: (what: string, doneBytes: number, totalBytes: number) => void,
): Promise<RemoteSession> {
  const session = await openSession({ ...flags, remote: false })
  const { project, runId } = session
  const config = readConfig(flags)
  const loaded = { root: project.root, pipeline: { store: project.remoteAddress } }
  const parts = { config, loaded, local: project.store, runId, onWarning: warnOnStderr, onProgress }
  return {
    ...session,
    stores: await openRemoteStores(parts),
    [Symbol.dispose]: () => session[Symbol.dispose](),
  }
}

function warnOnStderr(code: string, message: string): void {
  process.stderr.write(`warning[${code}]: ${message}\n`)
}

/** `20261201-093000-7f3a`: sorts by time, and two runs of one second differ. */
function toRunId(at: Date): string {
  const [date = '', time = ''] = at.toISOString().split('T')
  return `${date.replaceAll('-', '')}-${time.slice(0, 8).replaceAll(':', '')}-${randomBytes(2).toString('hex')}`
}

/** Writes to stdout; a reader that went away (`pilot log x | head`) is no error. */
export function print(text: string): void {
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
}

export interface Progress extends Disposable {
  show(done: { readonly doneBytes: number; readonly totalBytes: number }): void
  clear(): void
}

/** One line on stderr that says how far a long command is; nothing where nobody is there to see it. */
export function openProgress(verb: string): Progress {
  const isSeen = process.stderr.isTTY === true
  const startedMs = performance.now()
  let shownMs = 0
  const clear = (): void => {
    if (shownMs > 0) process.stderr.write('\r\x1b[K')
    shownMs = 0
  }
  return {
    show({ doneBytes, totalBytes }) {
      const nowMs = performance.now()
      if (!isSeen || nowMs - shownMs < 100) return
      shownMs = nowMs
      const left = leftOf(doneBytes, totalBytes, nowMs - startedMs)
      process.stderr.write(`\r\x1b[K${verb} ${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}${left}`)
    },
    clear,
    [Symbol.dispose]: clear,
  }
}

/** Estimated from the mean rate so far; said from the first seconds on. */
function leftOf(doneBytes: number, totalBytes: number, tookMs: number): string {
  if (tookMs < 2_000 || doneBytes === 0 || totalBytes < doneBytes) return ''
  return `, ${formatMs(((totalBytes - doneBytes) / doneBytes) * tookMs)} left`
}
