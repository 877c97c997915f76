// What the parts of a run share: the project, the ports, the signals, and what is known of each stage so far.

import type { Digest } from '../model/digest.ts'
import type { Executor, Reporter, ResultBrief } from '../model/ports.ts'
import type { Selected } from '../plan/select.ts'
import type { Resolved } from './look-up.ts'
import type { Project } from './project.ts'
import type { Sources } from './sources.ts'

export interface RunOptions {
  readonly project: Project
  readonly executor: Executor
  readonly reporter: Reporter
  readonly runId: string
  readonly now: () => Date
  /** First interrupt: start nothing more, TERM what runs. */
  readonly stop: AbortSignal
  /** Second interrupt: KILL. */
  readonly kill: AbortSignal
}

export interface RunContext extends RunOptions {
  readonly selected: Selected
  readonly sources: Sources
  /** The results of stages that are done, by index: what their dependents read. */
  readonly known: (ResultBrief | undefined)[]
  readonly resolved: (Resolved | undefined)[]
  /** Stages, by index, whose outputs the user wants on this machine. */
  readonly asked: ReadonlySet<number>
  /** Actions being brought about in this process: two stages may come to the same one. */
  readonly inFlight: Map<Digest, Promise<unknown>>
}
