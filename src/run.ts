// THE MAIN PATH. Select, look up, execute, capture, store, report: one run of a pipeline.
// What may happen next is decided by plan/schedule.ts; this file does what it says and tells it what came of it.

import { bringAbout } from './conduct/bring.ts'
import type { RunContext, RunOptions } from './conduct/context.ts'
import { lookUp, type Resolved } from './conduct/look-up.ts'
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
  const context: RunContext = { ...options, selected, sources, known: [], resolved: [], inFlight: new Map() }
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
      context.resolved[index] = resolved
      if (resolved.result && !context.selected.forced[index]) {
        settle(context, index, resolved.result, 'hit', tally)
        return { type: 'hit', stage: index }
      }
      if (context.selected.roles[index] === 'execute') return { type: 'miss', stage: index }
      tally.report(absentEvent(stage, resolved))
      return { type: 'failed', stage: index }
    }
    case 'execute': {
      const brought = await bringAbout(context, index, command.gpuIds, tally.report)
      if (brought.type === 'failed') {
        tally.report(brought.event)
        return { type: 'failed', stage: index }
      }
      settle(context, index, brought.result, brought.outcome, tally, brought.event)
      return { type: 'done', stage: index }
    }
  }
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
  readonly end: (wallMs: number) => RunEnd
}

/** Passes events on and counts outcomes for the last line and the exit code. */
function openTally({ reporter, stop }: RunOptions): Tally {
  const counts = { executed: 0, hit: 0, restored: 0, failed: 0, skipped: 0 }
  let exit = 0
  return {
    report: (event) => {
      if (event.type === 'stage-end') {
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
