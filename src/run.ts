// THE MAIN PATH. Select, look up, execute, capture, store, report: one run of a pipeline.
// What may happen next is decided by plan/schedule.ts; this file does what it says and tells it what came of it.

import { basename } from 'node:path'
import { bringAbout } from './conduct/bring.ts'
import type { RunContext, RunOptions } from './conduct/context.ts'
import { findRemote, lookUp, type Resolved } from './conduct/look-up.ts'
import type { Project } from './conduct/project.ts'
import { openQueue } from './conduct/queue.ts'
import { readSources } from './conduct/sources.ts'
import { EXIT_CODES } from './model/error.ts'
import type { RunEnd, RunEvent, StageEnd } from './model/event.ts'
import { exitCodeOf } from './model/failure.ts'
import type { ResultBrief } from './model/ports.ts'
import type { Stage } from './model/stage.ts'
import { placeOf } from './plan/name.ts'
import {
  type Command,
  clampNeeds,
  longestPaths,
  type Schedule,
  type ScheduleEvent,
  startSchedule,
  stepSchedule,
} from './plan/schedule.ts'
import { type Selected, selectStages } from './plan/select.ts'

/** Brings every selected stage up to date. A failed stage is an event, never an exception.
 *  @throws PilotError for what makes a run impossible: a bad selection, an unreadable source. */
export async function run(options: RunOptions): Promise<RunEnd> {
  const { project, stop } = options
  const startedMs = options.now().getTime()
  const selected = selectStages(project.graph, project.config.selection)
  const schedule = toSchedule(project, selected)
  const sources = await readSources(project, selected.roles)
  const context: RunContext = {
    ...options,
    selected,
    sources,
    known: [],
    resolved: [],
    inFlight: new Map(),
    asked: askedFor(project, selected),
  }
  const tally = openTally(options)
  const events = openQueue<ScheduleEvent>()
  const onStop = () => events.push({ type: 'stop' })
  stop.addEventListener('abort', onStop)
  tally.report({
    type: 'run-start',
    runId: options.runId,
    pipeline: project.file,
    recipe: project.recipe,
    stages: project.graph.stages
      .filter((_, index) => selected.roles[index] !== 'none')
      .map((stage) => stage.name),
    jobs: project.config.jobs,
    at: options.now().toISOString(),
  })
  try {
    let [state, commands] = startSchedule(schedule, project.capacity)
    for (;;) {
      for (const command of commands) void perform(command, context, tally).then(events.push, events.fail)
      if (state.unfinished === 0) break
      ;[state, commands] = stepSchedule(schedule, state, await events.take())
    }
  } finally {
    stop.removeEventListener('abort', onStop)
    project.store.flush()
  }
  await finishSending(context, tally)
  return tally.end(options.now().getTime() - startedMs)
}

/** Does one command; what came of it goes back to the scheduler. */
async function perform(
  command: Command,
  context: RunContext,
  tally: Tally,
): Promise<ScheduleEvent | undefined> {
  const { stage: index } = command
  const stage = context.project.graph.stages[index]
  if (!stage) throw new RangeError(`no stage ${index}`)
  switch (command.type) {
    case 'skip':
      tally.report(skippedEvent(stage, command.because, context))
      return undefined
    case 'look-up': {
      const resolved = lookUp(context, index)
      const before = context.known[index]
      context.resolved[index] = resolved
      if (!context.selected.forced[index] || tally.isExecuted(stage.name)) {
        const [found, outcome] = await findKept(context, index, resolved)
        if (found) {
          // Looked up again after a producer was lost, and nothing is different.
          if (before?.key === found.key && before.tree === found.tree) context.known[index] = found
          else settle(context, index, found, outcome, tally)
          return { type: 'hit', stage: index }
        }
      }
      if (context.selected.roles[index] === 'execute') return { type: 'miss', stage: index }
      tally.report(absentEvent(stage, resolved))
      return { type: 'failed', stage: index }
    }
    case 'execute': {
      const brought = await bringAbout(context, index, command.gpuIds, tally.report)
      if (brought.type === 'lost') {
        for (const producer of brought.producers) {
          const lost = context.known[producer]
          if (lost) reportLost(context, producer, lost.key, tally)
          context.known[producer] = undefined
        }
        return { type: 'lost', stage: index, producers: brought.producers }
      }
      if (brought.type === 'failed') {
        tally.report(brought.event)
        return { type: 'failed', stage: index }
      }
      settle(context, index, brought.result, brought.outcome, tally, brought.event)
      return { type: 'done', stage: index }
    }
  }
}

/** What is kept of an action here, or else beyond this machine. */
async function findKept(
  { project, asked }: RunContext,
  index: number,
  resolved: Resolved,
): Promise<readonly [ResultBrief | undefined, 'hit' | 'restored']> {
  if (resolved.result && !project.tiers?.isOnly) return [resolved.result, 'hit']
  if (!project.tiers) return [undefined, 'hit']
  return [await findRemote(project, resolved, asked.has(index)), 'restored']
}

function reportLost({ project }: RunContext, index: number, key: ResultBrief['key'], tally: Tally): void {
  const stage = project.graph.stages[index]
  if (stage) tally.report({ type: 'stage-lost', stage: stage.name, actionDigest: key })
}

/** Records a stage's result: for its dependents, for `latest/`, for `why`, and for whoever listens. */
function settle(
  context: RunContext,
  index: number,
  result: ResultBrief,
  outcome: 'executed' | 'hit' | 'restored',
  tally: Tally,
  details: Partial<StageEnd> = {},
): void {
  const { project, runId, now } = context
  const stage = project.graph.stages[index]
  if (!stage) return
  context.known[index] = result
  project.store.setLatest(stage.name, result.tree)
  const last = project.store.lastOf(stage.name)
  if (last?.key !== result.key || outcome === 'executed') {
    const wallMs = details.usage?.wallMs ?? last?.wallMs ?? 0
    project.store.recordStage({
      stage: stage.name,
      runId,
      key: result.key,
      outcome,
      wallMs,
      at: now().toISOString(),
    })
  }
  tally.report({
    ...details,
    type: 'stage-end',
    stage: stage.name,
    outcome,
    actionDigest: result.key,
    outputs: result.outputs,
  })
}

/** Stages whose outputs the user wants here: those named, or else those that nothing follows. */
function askedFor({ graph, config }: Project, { roles }: Selected): ReadonlySet<number> {
  const { to, only } = config.selection
  const named = [...to, ...only].map((name) => graph.indexOf.get(name) ?? -1)
  if (named.length > 0) return new Set(named)
  return new Set(
    graph.stages.flatMap((_, index) =>
      roles[index] === 'execute' && graph.dependents[index]?.length === 0 ? [index] : [],
    ),
  )
}

/** Waits for what is being sent to the store beyond this machine, and writes down there what this run needs kept. */
async function finishSending({ project, runId, known, now, stop }: RunContext, tally: Tally): Promise<void> {
  const { tiers, store } = project
  if (!tiers?.isWritable || !tally.hasChanged()) return
  const unsent = await tiers.drain(stop)
  if (unsent > 0) {
    const message = `${unsent} results were not sent to ${tiers.name}: pilot push sends them`
    tally.report({ type: 'warning', code: 'unsent', message })
  }
  const keys = known.flatMap((result) => (result ? [result.key] : []))
  const trees = known.flatMap((result) => (result ? [result.tree] : []))
  const root = {
    schema: 'pilot.root.v1',
    project: basename(project.root),
    run: runId,
    at: now().toISOString(),
  }
  await tiers.putRoot(`run-${runId}`, { ...root, good: tally.isGood(), keys, trees })
  store.flush()
}

function toSchedule(project: Project, selected: Selected): Schedule {
  const { graph, capacity, store } = project
  // Nothing was measured before a stage's first run: then every stage weighs alike.
  const weights = graph.stages.map((stage) => Math.max(1, store.lastOf(stage.name)?.wallMs ?? 1))
  return {
    graph,
    roles: selected.roles,
    priorities: longestPaths(graph, weights),
    needs: graph.stages.map((stage) => clampNeeds(stage.resources, capacity)),
    keepGoing: project.config.keepGoing,
  }
}

// ---------------------------------------------------------------------------------------------------------- reporting

interface Tally {
  readonly report: (event: RunEvent) => void
  readonly isExecuted: (stage: string) => boolean
  /** True where anything but hits came of it. */
  readonly hasChanged: () => boolean
  readonly isGood: () => boolean
  readonly end: (wallMs: number) => RunEnd
}

/** Passes events on and counts outcomes for the last line and the exit code. */
function openTally({ reporter, stop }: RunOptions): Tally {
  const counts = { executed: 0, hit: 0, restored: 0, failed: 0, skipped: 0 }
  // A restored stage may be lost and then executed: what counts is what came of it last.
  const outcomes = new Map<string, StageEnd['outcome']>()
  let exit = 0
  return {
    isExecuted: (stage) => outcomes.get(stage) === 'executed',
    hasChanged: () => counts.executed + counts.restored + counts.failed > 0,
    isGood: () => exit === 0 && !stop.aborted,
    report: (event) => {
      if (event.type === 'stage-end') {
        const before = outcomes.get(event.stage)
        if (before) counts[before]--
        outcomes.set(event.stage, event.outcome)
        counts[event.outcome]++
        if (event.failure) exit = Math.max(exit, exitCodeOf(event.failure))
      }
      reporter.on(event)
    },
    end: (wallMs) => {
      const end: RunEnd = {
        type: 'run-end',
        exit: stop.aborted ? EXIT_CODES.interrupted : exit,
        executed: counts.executed,
        hits: counts.hit,
        restored: counts.restored,
        failed: counts.failed,
        skipped: counts.skipped,
        wallMs,
      }
      reporter.on(end)
      return end
    },
  }
}

function skippedEvent(stage: Stage, because: number | null, { project }: RunContext): StageEnd {
  const name = because === null ? undefined : project.graph.stages[because]?.name
  return {
    type: 'stage-end',
    stage: stage.name,
    outcome: 'skipped',
    actionDigest: null,
    outputs: {},
    reason: name === undefined ? 'the run was stopped' : `stage "${name}" failed`,
  }
}

/** A stage outside the selection, whose kept result is needed but is not there. */
function absentEvent(stage: Stage, resolved: Resolved): StageEnd {
  const where = placeOf(stage)
  return {
    type: 'stage-end',
    stage: stage.name,
    outcome: 'failed',
    actionDigest: resolved.key,
    outputs: {},
    ...(where && { where }),
    failure: {
      class: 'missing-output',
      message: `stage "${stage.name}" is needed, has no result in the store, and is not selected`,
      hint: `select it too: pilot run --to ${stage.name}`,
    },
  }
}
