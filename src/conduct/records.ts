// What recorded runs said of their stages. A run that only found hits did nothing and has no record.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Digest } from '../model/digest.ts'
import type { RunEvent, StageEnd } from '../model/event.ts'
import type { Project } from './project.ts'

/** How the stages ended in a run, by name; undefined where there is no record of it. */
export function readRecord({ store }: Project, runId: string): ReadonlyMap<string, StageEnd> | undefined {
  const path = join(store.root, 'runs', runId, 'events.ndjson')
  if (!/^[A-Za-z0-9-]+$/.test(runId) || !existsSync(path)) return undefined
  const ends = new Map<string, StageEnd>()
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const event = parseEvent(line)
    if (event?.type === 'stage-end') ends.set(event.stage, event)
  }
  return ends
}

/** More runs than this are not looked at. */
const MOST_RUNS = 20

/** How each action ended when it last came up in a run, the newest runs first. Run ids sort by time. */
export function lastEnds(project: Project, keys: ReadonlyMap<string, Digest>): ReadonlyMap<string, StageEnd> {
  const runs = join(project.store.root, 'runs')
  const ids = existsSync(runs) ? readdirSync(runs).sort().reverse().slice(0, MOST_RUNS) : []
  const found = new Map<string, StageEnd>()
  for (const id of ids) {
    for (const [stage, end] of readRecord(project, id) ?? []) {
      if (!found.has(stage) && end.actionDigest === keys.get(stage)) found.set(stage, end)
    }
    if (found.size === keys.size) break
  }
  return found
}

/** The last line of a record may be cut off where the machine went down. */
function parseEvent(line: string): RunEvent | undefined {
  if (!line.includes('"stage-end"')) return undefined
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
