// pilot log STAGE: the log of the newest attempt under runs/, or else the one kept with the result.

import { closeSync, existsSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Project } from '../conduct/project.ts'
import type { Flags } from '../config.ts'
import { PilotError } from '../model/error.ts'
import { findStage } from '../plan/graph.ts'
import { openSession, print } from './session.ts'

export async function logCommand(
  name: string,
  flags: Flags & { readonly follow?: boolean | undefined },
): Promise<number> {
  using session = await openSession(flags)
  const { project } = session
  findStage(project.graph, name)
  if (flags.follow) {
    await followLog(project, name)
    return 0
  }
  const path = newestLog(project, name)
  if (path) {
    process.stdout.write(readFileSync(path))
    return 0
  }
  const kept = await keptLog(project, name)
  if (kept === undefined) {
    throw new PilotError({
      code: 'no-log',
      blame: 'user',
      what: `stage "${name}" has not run here, or printed nothing`,
      hint: `run it: pilot run --to ${name}`,
    })
  }
  print(kept)
  return 0
}

/** Path of the log of the newest attempt, of whatever run. Run ids sort by time. */
function newestLog({ store }: Project, stage: string): string | undefined {
  const runs = join(store.root, 'runs')
  if (!existsSync(runs)) return undefined
  for (const run of readdirSync(runs).sort().reverse()) {
    const attempts = readdirSync(join(runs, run)).filter((file) => isLogOf(stage, file))
    const last = attempts.sort((a, b) => attemptOf(a) - attemptOf(b)).at(-1)
    if (last) return join(runs, run, last)
  }
  return undefined
}

function isLogOf(stage: string, file: string): boolean {
  return file.startsWith(`${stage}.`) && /^\.(\d+\.)?log$/.test(file.slice(stage.length))
}

function attemptOf(file: string): number {
  return Number(/\.(\d+)\.log$/.exec(file)?.[1] ?? 1)
}

async function keptLog({ store, tiers }: Project, stage: string): Promise<string | undefined> {
  const last = store.lastOf(stage)
  const log = last && store.readResult(last.key)?.record.log
  if (!log) return undefined
  const text = (await store.getLog(log.digest)) ?? (await tiers?.fetchLog(log.digest))
  return text?.toString('utf8')
}

/** Prints what there is and what comes, until nobody holds the stage's action any more. */
async function followLog(project: Project, stage: string): Promise<void> {
  let path: string | undefined
  let file: number | undefined
  let printed = 0
  const open = (next: string): void => {
    if (file !== undefined) closeSync(file)
    path = next
    file = openSync(next, 'r')
    printed = 0
  }
  try {
    for (let wasRunning = true; ; ) {
      const isRunning = project.store.isStageRunning(stage)
      const newest = newestLog(project, stage)
      // The log of an attempt that succeeded is moved to where logs are kept: what is open stays so.
      if (newest !== undefined && newest !== path) open(newest)
      if (file !== undefined) printed += copyToStdout(file, printed)
      if (!isRunning && !wasRunning) return
      wasRunning = isRunning
      await delay(200)
    }
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** @returns bytes printed */
function copyToStdout(file: number, from: number): number {
  const { size } = fstatSync(file)
  const chunk = Buffer.alloc(1 << 16)
  let at = from
  while (at < size) {
    const got = readSync(file, chunk, 0, chunk.length, at)
    if (got === 0) break
    process.stdout.write(Buffer.from(chunk.subarray(0, got)))
    at += got
  }
  return at - from
}
