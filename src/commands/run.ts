// pilot run and pilot plan: chooses who listens, opens the executor, turns interrupts into signals.

import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { dryRun } from '../conduct/dry-run.ts'
import type { Project } from '../conduct/project.ts'
import { type Flags, readTerminal } from '../config.ts'
import { openMachineExecutor } from '../execute/machine.ts'
import { EXIT_CODES } from '../model/error.ts'
import type { RunEvent } from '../model/event.ts'
import type { Reporter } from '../model/ports.ts'
import { formatPlan } from '../report/explain.ts'
import { fanOut, recordEvents } from '../report/fan-out.ts'
import { jsonReporter } from '../report/json.ts'
import { plainReporter } from '../report/plain.ts'
import { run } from '../run.ts'
import { openInterrupts } from './interrupts.ts'
import { openSession, print } from './session.ts'
import { summarise } from './summary.ts'

type RunFlags = Flags & { readonly json?: boolean | undefined; readonly dryRun?: boolean | undefined }

export async function runCommand(stages: readonly string[], flags: RunFlags): Promise<number> {
  if (flags.dryRun) return planCommand(stages, flags)
  let listener: Reporter | undefined
  const early: RunEvent[] = []
  const onWarning = (code: string, message: string) => {
    const event = { type: 'warning', code, message } as const
    if (listener) listener.on(event)
    else early.push(event)
  }
  const onProgress = (what: string, doneBytes: number, totalBytes: number) =>
    listener?.on({ type: 'progress', what, doneBytes, totalBytes })
  using session = await openSession(flags, stages, onWarning, onProgress)
  const { project, runId, now } = session
  const reporter = fanOut([await chooseReporter(flags), openRecord(project, runId, onWarning)])
  listener = reporter
  for (const event of early) reporter.on(event)
  await using executor = openMachineExecutor({
    environment: project.config.environment,
    onWarning,
    tempRoot: () => project.store.makeTemp('pipes'),
  })
  using interrupts = openInterrupts()
  const end = await run({
    project,
    executor,
    reporter,
    runId,
    now,
    stop: interrupts.stop,
    kill: interrupts.kill,
  })
  await reporter.close()
  if (end.exit === EXIT_CODES.ok && !flags.json) print(summarise(project, project.config.cwd))
  return end.exit
}

export async function planCommand(stages: readonly string[], flags: RunFlags): Promise<number> {
  using session = await openSession(flags, stages)
  const { rows } = await dryRun(session.project)
  if (flags.json) for (const row of rows) print(JSON.stringify({ type: 'stage-plan', ...row }))
  else print(formatPlan(rows))
  return 0
}

async function chooseReporter(flags: RunFlags): Promise<Reporter> {
  const write = (text: string) => void process.stdout.write(text)
  if (flags.json) return jsonReporter(write)
  const { hasColor, isInteractive } = readTerminal()
  if (isInteractive) return (await import('../report/live.ts')).liveReporter({ write, hasColor })
  return plainReporter({ write, hasColor })
}

/** The events of the run beside its logs; the folder is made when there is something to keep. */
function openRecord(
  project: Project,
  runId: string,
  onWarning: (code: string, message: string) => void,
): Reporter {
  let isWritable = true
  return recordEvents((lines) => {
    if (!isWritable) return
    try {
      appendFileSync(join(project.store.runFolder(runId), 'events.ndjson'), lines)
    } catch (error) {
      // A reporter must not throw: the run goes on without its record.
      isWritable = false
      onWarning('record-unwritable', `the events of this run are not recorded: ${String(error)}`)
    }
  })
}
