import fc from 'fast-check'
import { expect, test } from 'vitest'
import { planGraph } from '../../../src/plan/graph.ts'
import {
  type Capacity,
  type Command,
  clampNeeds,
  longestPaths,
  type Schedule,
  type ScheduleEvent,
  startSchedule,
  stepSchedule,
} from '../../../src/plan/schedule.ts'
import { plainStage, reads } from '../../rig/stages.ts'

const CAPACITY: Capacity = { jobs: 3, cpus: 4, memoryMiB: 1000, gpuIds: ['0', '1'] }

/** Random DAG: stage i reads some of the stages before it, and needs something. */
const dags = fc.integer({ min: 1, max: 25 }).chain((count) =>
  fc.tuple(
    ...Array.from({ length: count }, (_, i) =>
      fc.record({
        reads: fc.uniqueArray(fc.nat(Math.max(0, i - 1)), { maxLength: i === 0 ? 0 : 3 }),
        cpus: fc.integer({ min: 1, max: 6 }),
        memoryMiB: fc.integer({ min: 0, max: 1200 }),
        gpus: fc.integer({ min: 0, max: 2 }),
        verdict: fc.constantFrom('hit', 'miss', 'miss', 'broken'),
        fails: fc.boolean().map((fails) => fails && i % 3 === 0),
      }),
    ),
  ),
)

function toSchedule(
  dag: readonly { reads: number[]; cpus: number; memoryMiB: number; gpus: number }[],
  keepGoing: boolean,
): Schedule {
  const graph = planGraph(
    dag.map((node, i) =>
      plainStage(`s${i}`, { inputs: reads(...node.reads.map((j) => `s${j}`)), resources: node }),
    ),
  )
  return {
    graph,
    roles: dag.map(() => 'execute' as const),
    priorities: longestPaths(
      graph,
      dag.map(() => 1),
    ),
    needs: graph.stages.map((stage) => clampNeeds(stage.resources, CAPACITY)),
    keepGoing,
  }
}

test('every stage is settled once, after what it needs, and the machine is never overbooked', () => {
  fc.assert(
    fc.property(dags, fc.boolean(), fc.infiniteStream(fc.nat(1000)), (dag, keepGoing, picks) => {
      const schedule = toSchedule(dag, keepGoing)
      const settled = new Map<number, string>()
      const running = new Map<number, readonly string[]>()
      let [state, commands] = startSchedule(schedule, CAPACITY)
      const open: Command[] = [...commands]
      while (open.length > 0) {
        const [command] = open.splice((picks.next().value ?? 0) % open.length, 1)
        if (!command) break
        const event = answer(command, dag, schedule, settled, running)
        if (!event) continue
        ;[state, commands] = stepSchedule(schedule, state, [event])
        for (const next of commands) {
          if (next.type === 'execute') running.set(next.stage, next.gpuIds)
          open.push(next)
        }
        checkCapacity(schedule, running)
      }
      expect(settled.size).toBe(dag.length)
      expect(state.unfinished).toBe(0)
      expect({ ...state.free, gpuIds: [...state.free.gpuIds].sort() }).toEqual(CAPACITY)
      if (keepGoing) checkKeptGoing(dag, settled)
    }),
  )
})

function answer(
  command: Command,
  dag: readonly { reads: number[]; verdict: string; fails: boolean }[],
  schedule: Schedule,
  settled: Map<number, string>,
  running: Map<number, readonly string[]>,
): ScheduleEvent | undefined {
  const { stage } = command
  const node = dag[stage]
  expect(settled.has(stage)).toBe(false)
  if (command.type === 'skip') {
    settled.set(stage, 'skipped')
    return undefined
  }
  for (const dependency of schedule.graph.dependencies[stage] ?? []) {
    expect(['hit', 'done']).toContain(settled.get(dependency))
  }
  if (command.type === 'look-up' && node?.verdict === 'miss') return { type: 'miss', stage }
  running.delete(stage)
  const failed = command.type === 'execute' ? node?.fails : node?.verdict === 'broken'
  const type = failed ? 'failed' : command.type === 'execute' ? 'done' : 'hit'
  settled.set(stage, type)
  return { type, stage }
}

function checkCapacity(schedule: Schedule, running: ReadonlyMap<number, readonly string[]>): void {
  const needs = [...running.keys()].map((stage) => schedule.needs[stage])
  const total = (of: (n: { cpus: number; memoryMiB: number }) => number) =>
    needs.reduce((sum, n) => sum + (n ? of(n) : 0), 0)
  expect(running.size).toBeLessThanOrEqual(CAPACITY.jobs)
  expect(total((n) => n.cpus)).toBeLessThanOrEqual(CAPACITY.cpus)
  expect(total((n) => n.memoryMiB)).toBeLessThanOrEqual(CAPACITY.memoryMiB)
  const gpus = [...running.values()].flat()
  expect(new Set(gpus).size).toBe(gpus.length)
}

/** With keep-going a stage is skipped exactly when something it needs failed or was skipped. */
function checkKeptGoing(dag: readonly { reads: number[] }[], settled: ReadonlyMap<number, string>): void {
  dag.forEach((node, stage) => {
    const blocked = node.reads.some((dependency) =>
      ['failed', 'skipped'].includes(settled.get(dependency) ?? ''),
    )
    expect(settled.get(stage) === 'skipped').toBe(blocked)
  })
}

const NODE = { cpus: 1, memoryMiB: 0, gpus: 0 }

test('the longest path goes first', () => {
  // 0 alone; 1 <- 2 <- 3: stage 1 heads the longer path, though stage 0 comes first.
  const schedule = toSchedule(
    [
      { ...NODE, reads: [] },
      { ...NODE, reads: [] },
      { ...NODE, reads: [1] },
      { ...NODE, reads: [2] },
    ],
    false,
  )
  const [state] = startSchedule(schedule, { ...CAPACITY, jobs: 1 })

  const [, commands] = stepSchedule(schedule, state, [
    { type: 'miss', stage: 0 },
    { type: 'miss', stage: 1 },
  ])

  expect(commands).toEqual([{ type: 'execute', stage: 1, gpuIds: [] }])
})

test('a stage that does not fit lets a smaller one pass', () => {
  const schedule = toSchedule(
    [
      { ...NODE, gpus: 2, reads: [] },
      { ...NODE, gpus: 2, reads: [] },
      { ...NODE, reads: [] },
    ],
    false,
  )
  const [state] = startSchedule(schedule, CAPACITY)

  const [, commands] = stepSchedule(
    schedule,
    state,
    [0, 1, 2].map((stage) => ({ type: 'miss', stage })),
  )

  expect(commands).toEqual([
    { type: 'execute', stage: 0, gpuIds: ['0', '1'] },
    { type: 'execute', stage: 2, gpuIds: [] },
  ])
})

test('a stop skips what has not started and lets what runs end', () => {
  const schedule = toSchedule(
    [
      { ...NODE, reads: [] },
      { ...NODE, reads: [0] },
    ],
    false,
  )
  const [begun] = startSchedule(schedule, CAPACITY)
  const [running] = stepSchedule(schedule, begun, [{ type: 'miss', stage: 0 }])

  const [stopping, commands] = stepSchedule(schedule, running, [{ type: 'stop' }])
  const [ended] = stepSchedule(schedule, stopping, [{ type: 'done', stage: 0 }])

  expect(commands).toEqual([{ type: 'skip', stage: 1, because: null }])
  expect(ended.unfinished).toBe(0)
})

test('a step leaves the state it started from as it was', () => {
  const schedule = toSchedule(
    [
      { ...NODE, reads: [] },
      { ...NODE, reads: [0] },
    ],
    false,
  )
  const [state] = startSchedule(schedule, CAPACITY)
  const before = structuredClone(state)

  stepSchedule(schedule, state, [{ type: 'hit', stage: 0 }])

  expect(state).toEqual(before)
})
