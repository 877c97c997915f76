// A declared stage, erased of its types: plain data that plan/ can hash and order. Declared through declare/.

import type { Digest } from './digest.ts'

/** What an output or input holds: one file, one JSON file with a schema, or a folder. */
export type ContentKind = 'file' | 'json' | 'tree'

/** Where an input comes from: an output of another stage, or a path in the project. */
export type InputRef =
  | { readonly from: 'stage'; readonly stage: string; readonly output: string; readonly kind: ContentKind }
  | { readonly from: 'source'; readonly path: string; readonly kind: ContentKind }

export interface OutputSpec {
  readonly kind: ContentKind
  /** Relative to the stage's output folder, with `/`. */
  readonly path: string
  /** Digest of the JSON Schema, where the output is `json`. */
  readonly schema?: Digest
  /** Says what is wrong with a parsed JSON output, or answers undefined. Not hashed: `schema` is. */
  readonly check?: (value: unknown) => string | undefined
}

export interface Resources {
  readonly cpus: number
  /** 0: not declared, so not counted. */
  readonly memoryMiB: number
  readonly gpus: number
}

export interface EnvironmentSpec {
  /** Taken from the host and in the key: set, empty and unset are three values. */
  readonly keep: readonly string[]
  /** Taken from the host, not in the key: where things are (proxies, certificates), never what they are. */
  readonly pass: readonly string[]
  /** Taken from the host, not in the key, redacted wherever text is kept. */
  readonly secrets: readonly string[]
  /** Constants, in the key. */
  readonly set: Readonly<Record<string, string>>
}

/** How a named tool tells its version: run once a pilot run, its first line of output is in the key. */
export interface ToolSpec {
  readonly command: readonly string[]
}

export type AcceleratorFact = 'model' | 'driver' | 'cuda'

/** Isolation levels, weakest first; what a result was made under is recorded in it. */
export type Isolation = 'workdir' | 'sandbox' | 'traced' | 'container'

export interface Place {
  readonly file: string
  readonly line: number
}

export interface Stage {
  readonly name: string
  /** Program and arguments; `{in:x}`, `{out:x}`, `{src}` and `{node}` stand for paths known only at execution. */
  readonly argv: readonly string[]
  /** The stage's own folder is the input named `src`. */
  readonly inputs: Readonly<Record<string, InputRef>>
  readonly outputs: Readonly<Record<string, OutputSpec>>
  readonly environment: EnvironmentSpec
  readonly tools: Readonly<Record<string, ToolSpec>>
  /** Name of the input that is, or carries, the lock of the stage's environment. */
  readonly lockfile: string | undefined
  /** `name@sha256:…`; what is at work in it is said by its digest. */
  readonly image: string | undefined
  readonly accelerator: readonly AcceleratorFact[]
  readonly isolation: Isolation
  /** A fetch stage: may use the network under every isolation level. */
  readonly network: boolean
  readonly resources: Resources
  readonly timeoutMs: number | undefined
  /** Attempts after the first, for preempted and infra failures only. */
  readonly retries: number
  /** Folder under the workdir saved when an attempt dies and given to the next attempt of the same action. */
  readonly resume: string | undefined
  /** Where the stage is declared. A function: line numbers cost time and only errors need them. */
  readonly where: () => Place | undefined
}

/** A pipeline as loaded: its stages in declaration order. */
export interface Pipeline {
  readonly stages: readonly Stage[]
  /** What writes each lock: program and arguments, by name. */
  readonly locks: Readonly<Record<string, readonly string[]>>
  /** What tells whether this machine has what the stages need: program and arguments, by name. */
  readonly checks: Readonly<Record<string, readonly string[]>>
  /** Address of the store beyond this machine. */
  readonly store?: string | undefined
  /** Images named by a tag, each once. */
  readonly images: readonly string[]
}

/** Input name of the stage's own folder. */
export const FOLDER_INPUT = 'src'
