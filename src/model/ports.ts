// The three seams: where bytes rest (Store), where commands run (Executor), who listens (Reporter).
// Each has a contract suite under tests/contract that every implementation runs; the comments here are the contract.

import type { Digest } from './digest.ts'
import type { RunEvent } from './event.ts'
import type { ActionResult, FailureClass, LogRecord, Usage } from './result.ts'
import type { Isolation, Resources } from './stage.ts'
import type { Tree } from './tree.ts'

// ---------------------------------------------------------------------------------------------------------------- Store

/** Digest -> bytes (trees, logs) and action digest -> action result. Knows nothing of stages.
 *  Write order: the tree before the result that names it. A reader that finds a result whose tree is gone or
 *  damaged answers as if there were no result. */
export interface Store {
  /** For messages: `local`, `s3://bucket/prefix`. */
  readonly name: string
  getResult(key: Digest): Promise<ActionResult | undefined>
  /** First writer wins, unless `replace` (force, heal). Idempotent. */
  putResult(result: ActionResult, options: { readonly replace: boolean }): Promise<void>
  hasTree(digest: Digest): Promise<boolean>
  /** Fills the new folder `into` (it must not exist; its parent does) with the tree, every byte verified.
   *  Undefined, with `into` absent, when the store lacks the tree or its copy fails verification (then quarantined). */
  fetchTree(digest: Digest, into: string): Promise<Tree | undefined>
  /** Keeps a copy of the tree standing in `from`, which stays the caller's. Idempotent. */
  sendTree(tree: Tree, from: string): Promise<void>
  getLog(digest: Digest): Promise<Buffer | undefined>
  putLog(digest: Digest, text: Uint8Array): Promise<void>
}

/** The store of this machine, beside the project: immutable trees at fixed paths, and what makes checking them cheap.
 *  Synchronous where the no-op path goes through it. Several processes may have it open; kill -9 leaves it valid. */
export interface LocalStore extends Store, Disposable {
  /** Absolute path of `artifacts/`. */
  readonly root: string

  // -- results
  /** What is kept for an action, when its tree stands here intact (by stat; re-hashed where the stat changed).
   *  A damaged tree is quarantined and reported through `onDamage`, and the answer is undefined. */
  lookup(key: Digest): ResultBrief | undefined
  /** As `getResult`, synchronous, without looking at the tree. */
  readResult(key: Digest): ActionResult | undefined
  /** Notes what is known of an action whose tree is elsewhere: for `why` and `log`, never served as a hit. */
  noteResult(result: ActionResult): void

  // -- trees
  /** Moves the folder `dir` (same file system) to its place as `tree` and makes it read-only. Where the tree stands
   *  already, `dir` is removed. Returns its path. */
  adoptTree(tree: Tree, dir: string): string
  /** Path of an intact tree (checked as in `lookup`), or undefined. */
  openTree(digest: Digest): string | undefined
  /** The entries of a tree that stands here. */
  readTree(digest: Digest): Tree | undefined
  /** True when the stat of every entry is still what was recorded: nobody wrote into the tree. */
  isUntouched(digest: Digest): boolean

  // -- digests of source files by their stat
  readonly stats: StatCache

  // -- one action runs once on this machine
  /** Claims an action for this run; `held` names who has it. A claim dies with the process that holds it.
   *  @param stage for `isStageRunning` only */
  claim(
    key: Digest,
    stage?: string,
  ): { readonly type: 'claimed' } | { readonly type: 'held'; readonly holder: string }
  release(key: Digest): void
  /** True while a living process holds a claim made for the stage. */
  isStageRunning(stage: string): boolean

  // -- runs
  /** Fresh folder on the store's own file system, for a workdir or a temporary tree. */
  makeTemp(label: string): string
  /** Folder `runs/<id>`, made. */
  runFolder(runId: string): string
  /** Points `latest/<stage>` at the tree. */
  setLatest(stage: string, tree: Digest): void
  /** Which action each stage of the pipeline last came to, for `why` and for gc's roots. */
  recordStage(row: StageRow): void
  lastOf(stage: string): StageRow | undefined
  /** Writes what is buffered (stat cache, stage rows). Also done on dispose. */
  flush(): void
}

/** The part of a result that keying and wiring need. */
export interface ResultBrief {
  readonly key: Digest
  readonly tree: Digest
  readonly outputs: ActionResult['outputs']
}

export interface StageRow {
  readonly stage: string
  readonly runId: string
  readonly key: Digest
  readonly outcome: 'executed' | 'hit' | 'restored' | 'failed'
  /** Wall time of the last execution in ms: the scheduler's weight for "longest path first". */
  readonly wallMs: number
  /** ISO 8601, UTC. */
  readonly at: string
}

/** Digest of a file by path, size, mtime, ctime and inode. A file changed within the clock's grain of its hashing
 *  ("racily clean") is not trusted and hashed again. */
export interface StatCache {
  get(path: string, stat: FileStat): Digest | undefined
  set(path: string, stat: FileStat, digest: Digest): void
}

export interface FileStat {
  readonly size: number
  readonly mtimeMs: number
  readonly ctimeMs: number
  readonly ino: number
}

// ------------------------------------------------------------------------------------------------------------- Executor

/** A command to be run in a prepared working directory. */
export interface Job {
  readonly key: Digest
  readonly stage: string
  readonly attempt: number
  readonly runId: string
  readonly argv: readonly string[]
  /** Absolute; holds `in/`, `out/`; HOME and TMPDIR are beside it. */
  readonly cwd: string
  /** The whole environment of the process. */
  readonly environment: Readonly<Record<string, string>>
  /** Values that must be redacted from the log. */
  readonly secrets: readonly string[]
  /** Absolute path of the log file; made only when the first line comes. */
  readonly logPath: string
  readonly timeoutMs: number | undefined
  readonly resources: Resources
  /** Ids of the GPUs given to the job; empty where it asked for none. */
  readonly gpuIds: readonly string[]
  readonly isolation: Isolation
  readonly image: string | undefined
  /** Absolute paths readable besides the cwd (immutable trees, machine folder). */
  readonly readable: readonly string[]
  /** Absolute paths outside the cwd the job may write (machine folder). */
  readonly writable: readonly string[]
  readonly network: boolean
  readonly onLine: (stream: 'stdout' | 'stderr', line: string) => void
}

export interface JobOutcome {
  /** Undefined when the command exited 0. */
  readonly failure:
    | {
        readonly class: FailureClass
        readonly message: string
        readonly exitCode?: number
        readonly signal?: string
      }
    | undefined
  readonly usage: Usage
  /** null where nothing was written. */
  readonly log: LogRecord | null
  /** Isolation level really applied. */
  readonly isolation: Isolation
  /** Digest of the configuration of the image it ran in. */
  readonly imageConfig?: string
}

/** Name under which a job is found again: a pid and its start time, a Slurm job id. */
export type JobHandle = string

/** Where commands run. A job never outlives the executor by more than 2 s, also when pilot is killed with -9
 *  (local), or can be found again by `reattach` (remote). */
export interface Executor extends AsyncDisposable {
  readonly name: string
  submit(job: Job): Promise<JobHandle>
  /** Resolves when the job has ended and no process of it is left. Never rejects for a failed command. */
  wait(handle: JobHandle): Promise<JobOutcome>
  /** `term`: TERM to the whole group, KILL after a grace of 5 s. `kill`: KILL at once. */
  cancel(handle: JobHandle, how: 'term' | 'kill'): void
  /** The handle of a job of this action still running from an earlier driver, where the executor keeps such. */
  reattach(key: Digest): Promise<JobHandle | undefined>
}

// ------------------------------------------------------------------------------------------------------------- Reporter

/** Who listens: a fold over the events of a run. Must not throw and must not block. */
export interface Reporter {
  on(event: RunEvent): void
  /** Called once after `run-end`; writes what is left. */
  close(): Promise<void>
}
