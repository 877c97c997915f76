// What a machine has, as found by looking, and what a pipeline needs of it. Nouns only: execute/ fills the facts,
// report/ judges them.

/** A program that told its version, or why it did not. */
export type Program =
  | { readonly path: string; readonly version: string }
  | { readonly path: undefined; readonly why: string }

export interface Gpu {
  readonly model: string
  readonly driver: string
  /** `9.0`; empty where the driver is too old to tell. */
  readonly computeCapability: string
  readonly memoryMiB: number
}

/** The file system that holds the store. */
export interface Disk {
  readonly path: string
  readonly freeBytes: number
  /** Why nothing can be written there; undefined where it can. */
  readonly unwritable: string | undefined
  /** Time of a file written now, less the time of this process, in ms; undefined where none was written. */
  readonly skewMs: number | undefined
}

export interface MachineFacts {
  /** `linux x64 glibc`. */
  readonly system: string
  readonly node: { readonly path: string; readonly version: string }
  /** By name: git, uv, python, zstd. */
  readonly programs: Readonly<Record<string, Program>>
  /** Those that can run an image, by name: podman, docker, or the one that is named. */
  readonly runtimes: Readonly<Record<string, Program>>
  /** Tools that stages declare, by command line. */
  readonly tools: Readonly<Record<string, Program>>
  /** The pipeline's own checks, by name: what they printed, and whether they exited 0. */
  readonly checks: Readonly<Record<string, { readonly passed: boolean; readonly lines: readonly string[] }>>
  readonly gpus: readonly Gpu[]
  /** Newest CUDA the driver serves; empty where there is none. */
  readonly cuda: string
  readonly cpus: number
  readonly memoryMiB: number
  readonly disk: Disk
  /** Wall clock of this process, in ms since the epoch. */
  readonly nowMs: number
  /** The newest moment known to be past, in ms since the epoch: a file of the project was changed then. */
  readonly pastMs: number
}

/** What the stages of a recipe ask of the machine, with the names of those that ask. */
export interface Needs {
  readonly gpu: readonly string[]
  readonly image: readonly string[]
  /** Command line -> stages. */
  readonly tools: Readonly<Record<string, readonly string[]>>
  readonly memory: { readonly mostMiB: number; readonly stage: string } | undefined
}
