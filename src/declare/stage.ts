// defineStage: a typed stage definition, and its use in a pipeline with parameters and wired inputs.
// Pure: nothing is read or started here; the result is model/stage.ts's plain data.

import type { z } from 'zod'
import { digestOf } from '../model/digest.ts'
import { PilotError } from '../model/error.ts'
import {
  type AcceleratorFact,
  FOLDER_INPUT,
  type InputRef,
  type Isolation,
  type Place,
  type OutputSpec as PlainOutput,
  type Stage,
  type ToolSpec,
} from '../model/stage.ts'
import type { Accepts, Content, Handle, InputSpec, OutputSpec } from './content.ts'
import { formatIssues } from './issues.ts'
import { callSite, fromProjectRoot } from './place.ts'

export type InputSpecs = Readonly<Record<string, InputSpec>>
export type OutputSpecs = Readonly<Record<string, OutputSpec>>

type ContentOf<S> = S extends { readonly content?: infer C } ? Extract<C, Content> : never
export type Wiring<I extends InputSpecs> = { readonly [K in keyof I]: Accepts<ContentOf<I[K]>> }
export type Handles<O extends OutputSpecs> = { readonly [K in keyof O]: Handle<ContentOf<O[K]>> }

/** What `run` may use: parameters, and placeholders for paths that are known only at execution. */
export interface RunContext<P, I, O> {
  readonly params: P
  /** Path of each input, relative to the working directory. Read-only. */
  readonly inputs: { readonly [K in keyof I]: string }
  /** Path to write each output to; the folder above it exists. */
  readonly outputs: { readonly [K in keyof O]: string }
  /** The stage's own folder (`folder`), as an input. */
  readonly src: string
  /** The Node.js that runs pilot. */
  readonly node: string
}

export interface StageDefinition<P extends z.ZodType, I extends InputSpecs, O extends OutputSpecs> {
  /** Lower-case letters, digits, `.`, `_` and `-`. */
  readonly name: string
  /** The stage's own folder, all of which is an input: `import.meta.dirname`. */
  readonly folder?: string
  readonly params?: P
  readonly inputs?: I
  readonly outputs: O
  /** Program and arguments, pure: the same parameters give the same list. */
  readonly run: (context: RunContext<z.output<P>, I, O>) => readonly string[]
  readonly resources?: { readonly cpus?: number; readonly memoryMiB?: number; readonly gpus?: number }
  readonly env?: {
    readonly keep?: readonly string[]
    readonly pass?: readonly string[]
    readonly secrets?: readonly string[]
    readonly set?: Readonly<Record<string, string>>
  }
  /** Tools whose version is in the key: `{ uv: ['uv', '--version'] }`. Not asked for a stage in an image. */
  readonly tools?: Readonly<Record<string, readonly string[]>>
  /** The input that is, or carries, the lock of the environment. */
  readonly lockfile?: Extract<keyof I, string>
  /** `registry/name@sha256:…`, or a tag that `pilot lock` has locked. Undefined: the pipeline's; null: none. */
  readonly image?: string | null | undefined
  readonly accelerator?: readonly AcceleratorFact[]
  readonly isolation?: Isolation
  /** True for a fetch stage: it may use the network, and its inputs hold the hashes of what it fetches. */
  readonly network?: boolean
  readonly timeoutMs?: number
  readonly retries?: number
  readonly resume?: string
}

/** A stage used in a pipeline: hand it to `definePipeline`, and its outputs to other stages. */
export interface StageUse<O extends OutputSpecs = OutputSpecs> {
  readonly outputs: Handles<O>
  readonly stage: Stage
  /** Says whether the stage takes the image of the pipeline. */
  readonly takesImage: boolean
}

type Use<P extends z.ZodType, I extends InputSpecs> = {
  /** Another name, where one definition is used twice. Not in the key. */
  readonly name?: string
} & (unknown extends z.input<P> ? { readonly params?: undefined } : { readonly params: z.input<P> }) &
  (keyof I extends never ? { readonly inputs?: undefined } : { readonly inputs: Wiring<I> })

/** Defines a kind of stage. The answer is called once for each use in a pipeline.
 *  @throws PilotError `invalid-params` (when used) where the parameters do not fit their schema. */
export function defineStage<
  P extends z.ZodType = z.ZodUnknown,
  I extends InputSpecs = Record<never, never>,
  O extends OutputSpecs = Record<never, never>,
>(definition: StageDefinition<P, I, O>): (use: Use<P, I>) => StageUse<O> {
  const outputs = toOutputs(definition.outputs)
  const definedAt = callSite()
  const folder = definition.folder === undefined ? undefined : fromProjectRoot(definition.folder)
  const shared = {
    outputs,
    environment: toEnvironment(definition.env),
    tools: definition.image ? NO_TOOLS : toTools(definition.tools),
    lockfile: definition.lockfile,
    image: definition.image ?? undefined,
    accelerator: definition.accelerator ?? [],
    isolation: definition.isolation ?? (definition.image ? 'container' : 'workdir'),
    network: definition.network ?? false,
    resources: { cpus: 1, memoryMiB: 0, gpus: 0, ...definition.resources },
    timeoutMs: definition.timeoutMs,
    retries: definition.retries ?? 2,
    resume: definition.resume,
    where: definedAt,
  }
  // A stage that says how it is isolated, and not by a container, has chosen.
  const takesImage = definition.image === undefined && (definition.isolation ?? 'container') === 'container'
  const inputPaths = placeholders('in', definition.inputs)
  const outputPaths = placeholders('out', definition.outputs)
  return (use) => {
    const name = use.name ?? definition.name
    const params = parseParams(definition, use.params, name)
    const argv = definition.run({
      params,
      inputs: inputPaths,
      outputs: outputPaths,
      src: '{src}',
      node: '{node}',
    })
    const stage: Stage = { name, argv, inputs: toInputs(folder, use.inputs, name), ...shared }
    return { stage, outputs: toHandles(name, definition.outputs), takesImage }
  }
}

function parseParams<P extends z.ZodType>(
  definition: { readonly params?: P },
  value: unknown,
  name: string,
): z.output<P> {
  // Without a schema there are no parameters: `run` sees undefined, which z.output of `unknown` allows.
  if (!definition.params) return undefined as z.output<P>
  const parsed = definition.params.safeParse(value)
  if (parsed.success) return parsed.data
  throw new PilotError({
    code: 'invalid-params',
    blame: 'user',
    what: `the parameters of stage "${name}" do not fit their schema:\n${formatIssues(parsed.error.issues)}`,
    where: formatPlace(callSite()()),
    hint: 'mend the values given where the stage is used, or the recipe they come from',
  })
}

function formatPlace(place: Place | undefined): string | undefined {
  return place && `${place.file}:${place.line}`
}

function toInputs(
  folder: string | undefined,
  wiring: Readonly<Record<string, Handle<Content>>> | undefined,
  stage: string,
): Stage['inputs'] {
  const inputs: Record<string, InputRef> = {}
  if (folder !== undefined) inputs[FOLDER_INPUT] = { from: 'source', path: folder, kind: 'tree' }
  for (const name in wiring) {
    const handle = wiring[name]
    if (handle === undefined || name === '__proto__') throw wiringError(stage, name)
    inputs[name] =
      handle.stage === null
        ? { from: 'source', path: handle.name, kind: handle.kind }
        : { from: 'stage', stage: handle.stage, output: handle.name, kind: handle.kind }
  }
  return inputs
}

function wiringError(stage: string, input: string): PilotError {
  return new PilotError({
    code: 'invalid-wiring',
    blame: 'user',
    what: `input "${input}" of stage "${stage}" is wired to nothing`,
    where: formatPlace(callSite()()),
    hint: 'the output it names does not exist: `npx tsc --noEmit` says which do',
  })
}

function toOutputs(specs: OutputSpecs): Stage['outputs'] {
  const outputs: Record<string, PlainOutput> = {}
  for (const [name, { kind, path, schema }] of Object.entries(specs)) {
    outputs[name] = schema
      ? { kind, path, schema: schemaDigest(schema), check: checkWith(schema) }
      : { kind, path }
  }
  return outputs
}

function schemaDigest(schema: z.ZodType) {
  return digestOf(JSON.stringify(schema.toJSONSchema({ unrepresentable: 'any' })))
}

function checkWith(schema: z.ZodType): (value: unknown) => string | undefined {
  return (value) => {
    const parsed = schema.safeParse(value)
    return parsed.success ? undefined : formatIssues(parsed.error.issues)
  }
}

function toHandles<O extends OutputSpecs>(stage: string, specs: O): Handles<O> {
  const handles: Record<string, Handle<Content>> = {}
  for (const name in specs) {
    const spec = specs[name]
    if (spec) handles[name] = { from: 'stage', kind: spec.kind, stage, name }
  }
  // Built key by key from the very specs that Handles<O> maps over.
  return handles as Handles<O>
}

function placeholders<T extends Readonly<Record<string, unknown>>>(
  side: 'in' | 'out',
  specs: T | undefined,
): { readonly [K in keyof T]: string } {
  const paths: Record<string, string> = {}
  for (const name in specs) paths[name] = `{${side}:${name}}`
  // One string for each key of `specs`.
  return paths as { readonly [K in keyof T]: string }
}

const EMPTY_ENVIRONMENT: Stage['environment'] = { keep: [], pass: [], secrets: [], set: {} }

function toEnvironment(
  env: StageDefinition<z.ZodType, InputSpecs, OutputSpecs>['env'],
): Stage['environment'] {
  return env ? { ...EMPTY_ENVIRONMENT, ...env } : EMPTY_ENVIRONMENT
}

/** What an image holds is said by its digest, and the tools of this machine do not get into it. */
export const NO_TOOLS: Stage['tools'] = {}

function toTools(tools: Readonly<Record<string, readonly string[]>> | undefined): Stage['tools'] {
  if (!tools) return NO_TOOLS
  const specs: Record<string, ToolSpec> = {}
  for (const [name, command] of Object.entries(tools)) specs[name] = { command }
  return specs
}
