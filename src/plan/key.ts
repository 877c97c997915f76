// Stage + resolved inputs + facts of the machine -> action; and the definition digest, known before anything runs.

import {
  ACTION_SCHEMA,
  type Action,
  type ActionInput,
  type ActionOutput,
  type Platform,
} from '../model/action.ts'
import { toCanonicalJson } from '../model/canonical.ts'
import { type Digest, digestOf } from '../model/digest.ts'
import { type ContentKind, FOLDER_INPUT, type Stage } from '../model/stage.ts'

/** What of the world outside the project goes into keys. Read once a run, by the shell. */
export interface Facts {
  readonly platform: Platform
  /** The host's environment; only what stages declare is taken. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Version of each tool named by a stage, by `toolKey` of its command. */
  readonly tools: ReadonlyMap<string, string>
  /** Accelerator facts (`model`, `driver`, `cuda`), empty where there is no accelerator. */
  readonly accelerator: Readonly<Record<string, string>>
}

/** An input whose content is known. */
export interface KnownInput {
  readonly digest: Digest
  /** Path it has where it comes from: the output's path, or the source's. */
  readonly origin: string
}

/** @param inputs by input name, one for each input of the stage */
export function toAction(stage: Stage, inputs: Readonly<Record<string, KnownInput>>, facts: Facts): Action {
  const keyed: Record<string, ActionInput> = {}
  for (const name in stage.inputs) {
    const ref = stage.inputs[name]
    const known = inputs[name]
    if (!ref || !known) throw new TypeError(`input "${name}" of stage "${stage.name}" is not known`)
    keyed[name] = { kind: ref.kind, digest: known.digest, as: nameInWorkdir(name, ref.kind, known.origin) }
  }
  const lockfile = stage.lockfile === undefined ? null : (inputs[stage.lockfile]?.digest ?? null)
  return { ...fixedPart(stage, facts), inputs: keyed, lockfile }
}

/** Digest of all that is known of a stage before its inputs are. */
export function definitionDigest(stage: Stage, facts: Facts): Digest {
  const inputs: Record<string, string> = {}
  for (const name in stage.inputs) inputs[name] = stage.inputs[name]?.kind ?? ''
  const definition = { ...fixedPart(stage, facts), inputs }
  // Plain strings, nulls and records of them, which is what CanonicalValue describes.
  return digestOf(
    `definition\n${ACTION_SCHEMA}\n${toCanonicalJson(definition as unknown as Record<string, string>)}`,
  )
}

/** Key of a tool's version in `Facts.tools`. */
export function toolKey(command: readonly string[]): string {
  return JSON.stringify(command)
}

/** The name under which an input stands in `in/`: its own, and the extension of the file it is, which programs go by. */
export function nameInWorkdir(name: string, kind: ContentKind, origin: string): string {
  if (kind === 'tree' || name === FOLDER_INPUT) return name
  return name + (/\.[A-Za-z0-9]{1,10}$/.exec(origin)?.[0] ?? '')
}

function fixedPart(stage: Stage, facts: Facts): Omit<Action, 'inputs' | 'lockfile'> {
  return {
    argv: stage.argv,
    environment: perDeclaration(stage.environment, facts, () => environmentOf(stage, facts)),
    outputs: perDeclaration(stage.outputs, facts, () => outputsOf(stage)),
    platform: facts.platform,
    tools: perDeclaration(stage.tools, facts, () => toolsOf(stage, facts)),
    image: stage.image ?? null,
    accelerator: perDeclaration(stage.accelerator, facts, () => acceleratorOf(stage, facts)),
  }
}

const memo = new WeakMap<Facts, WeakMap<object, unknown>>()

/** Stages of one definition share their declarations, so what follows from them is worked out once; the shared
 *  result lets `actionDigest` spell it once too. Ten thousand stages are keyed in a third of the time. */
function perDeclaration<T>(declaration: object, facts: Facts, make: () => T): T {
  const made = memo.get(facts) ?? new WeakMap<object, unknown>()
  memo.set(facts, made)
  // Each declaration object is passed by one call site, so what is kept under it is that site's T.
  const known = made.get(declaration) as T | undefined
  if (known !== undefined) return known
  const value = make()
  made.set(declaration, value)
  return value
}

function environmentOf(stage: Stage, facts: Facts): Action['environment'] {
  const environment: Record<string, string | null> = { ...stage.environment.set }
  for (const name of stage.environment.keep) environment[name] = facts.environment[name] ?? null
  return environment
}

function outputsOf(stage: Stage): Action['outputs'] {
  const outputs: Record<string, ActionOutput> = {}
  for (const name in stage.outputs) {
    const spec = stage.outputs[name]
    if (!spec) continue
    outputs[name] = { kind: spec.kind, path: spec.path, ...(spec.schema && { schema: spec.schema }) }
  }
  return outputs
}

function toolsOf(stage: Stage, facts: Facts): Action['tools'] {
  const tools: Record<string, string> = {}
  for (const name in stage.tools) {
    const version = facts.tools.get(toolKey(stage.tools[name]?.command ?? []))
    if (version === undefined) throw new TypeError(`tool "${name}" of stage "${stage.name}" has no version`)
    tools[name] = version
  }
  return tools
}

function acceleratorOf(stage: Stage, facts: Facts): Action['accelerator'] {
  const accelerator: Record<string, string> = {}
  for (const fact of stage.accelerator) accelerator[fact] = facts.accelerator[fact] ?? 'none'
  return accelerator
}
