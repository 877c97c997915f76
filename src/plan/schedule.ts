// The scheduler: `(state, events) -> [state, commands]`, pure. It knows the graph, the roles and the machine's
// capacity; it does not know keys, stores or processes. Looking up is free, executing takes slots.

import type { Resources } from '../model/stage.ts'
import type { Graph } from './graph.ts'
import { type Heap, insert, take } from './heap.ts'
import type { Role } from './select.ts'

/** What never changes during a run. */
export interface Schedule {
  readonly graph: Graph
  readonly roles: readonly Role[]
  /** Length of the longest way from a stage to an end, by weight: longest path first. */
  readonly priorities: Float64Array
  readonly needs: readonly Resources[]
  /** Go on with what does not depend on a failed stage. */
  readonly keepGoing: boolean
}

export interface Capacity {
  readonly jobs: number
  readonly cpus: number
  readonly memoryMiB: number
  readonly gpuIds: readonly string[]
}

export interface ScheduleState {
  readonly status: Uint8Array
  /** Dependencies not yet done, by stage. */
  readonly waiting: Int32Array
  /** Stages to be executed as soon as there is room. */
  readonly queue: Heap
  readonly free: Capacity
  /** GPU ids given out, by stage. */
  readonly lent: ReadonlyMap<number, readonly string[]>
  readonly isStopping: boolean
  readonly unfinished: number
}

export type ScheduleEvent =
  | { readonly type: 'hit'; readonly stage: number }
  | { readonly type: 'miss'; readonly stage: number }
  | { readonly type: 'done'; readonly stage: number }
  /** A failed lookup or execution. */
  | { readonly type: 'failed'; readonly stage: number }
  /** A stage could not be executed for want of the outputs of `producers`, which were thought done: they are looked up
   *  again, and it waits for them. */
  | { readonly type: 'lost'; readonly stage: number; readonly producers: readonly number[] }
  /** Start nothing more. */
  | { readonly type: 'stop' }

export type Command =
  | { readonly type: 'look-up'; readonly stage: number }
  | { readonly type: 'execute'; readonly stage: number; readonly gpuIds: readonly string[] }
  | { readonly type: 'skip'; readonly stage: number; readonly because: number | null }

const WAITING = 0
const LOOKING = 1
const QUEUED = 2
const RUNNING = 3
const DONE = 4
const FAILED = 5
const SKIPPED = 6

/** The state before anything happened, and the first commands. */
export function startSchedule(
  schedule: Schedule,
  capacity: Capacity,
): readonly [ScheduleState, readonly Command[]] {
  const { graph, roles } = schedule
  const status = new Uint8Array(roles.length)
  const waiting = new Int32Array(roles.length)
  let unfinished = 0
  roles.forEach((role, index) => {
    if (role === 'none') status[index] = SKIPPED
    else unfinished++
    waiting[index] = graph.dependencies[index]?.length ?? 0
  })
  const commands: Command[] = []
  for (const stage of graph.order) {
    if (status[stage] === WAITING && waiting[stage] === 0) {
      status[stage] = LOOKING
      commands.push({ type: 'look-up', stage })
    }
  }
  const state = {
    status,
    waiting,
    queue: null,
    free: capacity,
    lent: new Map(),
    isStopping: false,
    unfinished,
  }
  return [state, commands]
}

/** One step of a run. Events may come in any order that the commands allow; several at once cost one copy of the state. */
export function stepSchedule(
  schedule: Schedule,
  before: ScheduleState,
  events: readonly ScheduleEvent[],
): readonly [ScheduleState, readonly Command[]] {
  const draft = { ...before, status: before.status.slice(), waiting: before.waiting.slice() }
  const commands: Command[] = []
  for (const event of events) apply(schedule, draft, event, commands)
  fillSlots(schedule, draft, commands)
  return [draft, commands]
}

type Draft = { -readonly [K in keyof ScheduleState]: ScheduleState[K] }

function apply(schedule: Schedule, draft: Draft, event: ScheduleEvent, commands: Command[]): void {
  switch (event.type) {
    case 'stop':
      draft.isStopping = true
      skipAllUnstarted(draft, commands)
      return
    case 'lost':
      withdraw(schedule, draft, event.stage)
      for (const producer of event.producers) reopen(schedule, draft, producer, commands)
      // Its producers were all brought back meanwhile, for another stage.
      if (draft.waiting[event.stage] === 0) lookAgain(draft, event.stage, commands)
      return
    case 'miss':
      // One of its producers was lost while it was looked up.
      if ((draft.waiting[event.stage] ?? 0) > 0) {
        draft.status[event.stage] = WAITING
        return
      }
      if (draft.isStopping) {
        skip(draft, event.stage, null, commands)
        return
      }
      draft.status[event.stage] = QUEUED
      draft.queue = insert(draft.queue, event.stage, schedule.priorities[event.stage] ?? 0)
      return
    case 'hit':
    case 'done':
      settle(schedule, draft, event.stage, DONE)
      wake(schedule, draft, event.stage, commands)
      return
    case 'failed':
      settle(schedule, draft, event.stage, FAILED)
      skipDependents(schedule, draft, event.stage, commands)
      if (!schedule.keepGoing) {
        draft.isStopping = true
        skipAllUnstarted(draft, commands)
      }
      return
  }
}

function settle(schedule: Schedule, draft: Draft, stage: number, status: number): void {
  if (draft.status[stage] === RUNNING) giveBack(draft, stage, schedule.needs[stage])
  draft.status[stage] = status
  draft.unfinished--
}

function wake(schedule: Schedule, draft: Draft, stage: number, commands: Command[]): void {
  for (const dependent of schedule.graph.dependents[stage] ?? []) {
    const left = (draft.waiting[dependent] ?? 0) - 1
    draft.waiting[dependent] = left
    if (left > 0) continue
    // Done with what a lost producer gave before: what it gives now may differ.
    if (draft.status[dependent] === DONE) reopen(schedule, draft, dependent, commands)
    if (draft.status[dependent] !== WAITING) continue
    if (draft.isStopping) {
      skip(draft, dependent, null, commands)
    } else {
      draft.status[dependent] = LOOKING
      commands.push({ type: 'look-up', stage: dependent })
    }
  }
}

/** A running stage that cannot be executed yet gives its place back. */
function withdraw(schedule: Schedule, draft: Draft, stage: number): void {
  if (draft.status[stage] === RUNNING) giveBack(draft, stage, schedule.needs[stage])
  draft.status[stage] = WAITING
}

/** A stage that was done is looked up again; what depends on it waits, or is looked up after it. */
function reopen(schedule: Schedule, draft: Draft, stage: number, commands: Command[]): void {
  if (draft.status[stage] !== DONE) return
  draft.unfinished++
  draft.status[stage] = WAITING
  for (const dependent of schedule.graph.dependents[stage] ?? []) {
    draft.waiting[dependent] = (draft.waiting[dependent] ?? 0) + 1
    // Taken from the queue when its turn comes.
    if (draft.status[dependent] === QUEUED) draft.status[dependent] = WAITING
  }
  if (draft.waiting[stage] === 0) lookAgain(draft, stage, commands)
}

function lookAgain(draft: Draft, stage: number, commands: Command[]): void {
  if (draft.isStopping) {
    skip(draft, stage, null, commands)
    return
  }
  draft.status[stage] = LOOKING
  commands.push({ type: 'look-up', stage })
}

function skipDependents(schedule: Schedule, draft: Draft, failed: number, commands: Command[]): void {
  const stack = [...(schedule.graph.dependents[failed] ?? [])]
  for (let stage = stack.pop(); stage !== undefined; stage = stack.pop()) {
    if (draft.status[stage] !== WAITING) continue
    skip(draft, stage, failed, commands)
    for (const next of schedule.graph.dependents[stage] ?? []) stack.push(next)
  }
}

function skipAllUnstarted(draft: Draft, commands: Command[]): void {
  for (let stage = 0; stage < draft.status.length; stage++) {
    if (draft.status[stage] === WAITING || draft.status[stage] === QUEUED) skip(draft, stage, null, commands)
  }
  draft.queue = null
}

function skip(draft: Draft, stage: number, because: number | null, commands: Command[]): void {
  draft.status[stage] = SKIPPED
  draft.unfinished--
  commands.push({ type: 'skip', stage, because })
}

/** Starts what fits, longest path first; a stage that does not fit lets smaller ones pass. */
function fillSlots(schedule: Schedule, draft: Draft, commands: Command[]): void {
  const passed: number[] = []
  while (draft.free.jobs > 0) {
    const next = take(draft.queue)
    if (!next) break
    const [stage, rest] = next
    draft.queue = rest
    if (draft.status[stage] !== QUEUED) continue
    const needs = schedule.needs[stage]
    if (needs && fits(needs, draft.free)) {
      draft.status[stage] = RUNNING
      commands.push({ type: 'execute', stage, gpuIds: lend(draft, stage, needs) })
    } else {
      passed.push(stage)
    }
  }
  for (const stage of passed) draft.queue = insert(draft.queue, stage, schedule.priorities[stage] ?? 0)
}

function fits(needs: Resources, free: Capacity): boolean {
  return needs.cpus <= free.cpus && needs.memoryMiB <= free.memoryMiB && needs.gpus <= free.gpuIds.length
}

function lend(draft: Draft, stage: number, needs: Resources): readonly string[] {
  const gpuIds = draft.free.gpuIds.slice(0, needs.gpus)
  draft.free = {
    jobs: draft.free.jobs - 1,
    cpus: draft.free.cpus - needs.cpus,
    memoryMiB: draft.free.memoryMiB - needs.memoryMiB,
    gpuIds: draft.free.gpuIds.slice(needs.gpus),
  }
  if (gpuIds.length > 0) draft.lent = new Map(draft.lent).set(stage, gpuIds)
  return gpuIds
}

function giveBack(draft: Draft, stage: number, needs: Resources | undefined): void {
  const gpuIds = draft.lent.get(stage) ?? []
  draft.free = {
    jobs: draft.free.jobs + 1,
    cpus: draft.free.cpus + (needs?.cpus ?? 0),
    memoryMiB: draft.free.memoryMiB + (needs?.memoryMiB ?? 0),
    gpuIds: gpuIds.length > 0 ? [...draft.free.gpuIds, ...gpuIds].sort() : draft.free.gpuIds,
  }
  if (gpuIds.length > 0) {
    const lent = new Map(draft.lent)
    lent.delete(stage)
    draft.lent = lent
  }
}

/** Longest way from each stage to an end. @param weights estimated wall time of each stage, any unit above 0 */
export function longestPaths(graph: Graph, weights: readonly number[]): Float64Array {
  const lengths = new Float64Array(graph.stages.length)
  for (let i = graph.order.length - 1; i >= 0; i--) {
    const stage = graph.order[i] ?? 0
    let longest = 0
    for (const dependent of graph.dependents[stage] ?? [])
      longest = Math.max(longest, lengths[dependent] ?? 0)
    lengths[stage] = longest + (weights[stage] ?? 1)
  }
  return lengths
}

/** Resources a stage may ask for on this machine: more CPUs or memory than there are is cut down to what there is,
 *  since it would otherwise wait for ever. GPUs are not: fewer would be another computation. */
export function clampNeeds(needs: Resources, capacity: Capacity): Resources {
  return {
    cpus: Math.min(needs.cpus, capacity.cpus),
    memoryMiB: Math.min(needs.memoryMiB, capacity.memoryMiB),
    gpus: needs.gpus,
  }
}
