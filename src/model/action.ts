// An action: a stage with its inputs resolved, and its digest - the key of the action cache.
// Left out of the key, each with its why: stage name (renaming is not a change), retries, attempt, timeouts,
// resources (they decide when and where, not what), host, log level, isolation level (what may be read is
// declared either way), passed variables (locations) and secrets (a rotated key is not a change).

import { toCanonicalJson } from './canonical.ts'
import { type Digest, digestOf } from './digest.ts'
import type { ContentKind } from './stage.ts'

/** Bumped with every change of a field's meaning; the golden test holds one digest of each version. */
export const ACTION_SCHEMA = 'pilot.action.v1'

export interface ActionInput {
  readonly kind: ContentKind
  /** In the key: the content of the input, never the key of what made it - that is the early cut-off. */
  readonly digest: Digest
  /** In the key: the name under which the command finds it. */
  readonly as: string
}

export interface ActionOutput {
  readonly kind: ContentKind
  readonly path: string
  readonly schema?: Digest
}

export interface Platform {
  /** `linux`, `darwin`. */
  readonly os: string
  /** `x64`, `arm64`. */
  readonly arch: string
  /** `glibc`, `musl` or `none`: binaries of one do not run on the other. */
  readonly libc: string
}

export interface Action {
  /** In the key: another command is another result. Placeholders stay, so no path of this machine is in it. */
  readonly argv: readonly string[]
  readonly inputs: Readonly<Record<string, ActionInput>>
  /** In the key: declared variables; null is "unset", which is not "". */
  readonly environment: Readonly<Record<string, string | null>>
  /** In the key: what is kept of what the command wrote. */
  readonly outputs: Readonly<Record<string, ActionOutput>>
  /** In the key: binaries differ by it. */
  readonly platform: Platform
  /** In the key: versions of the tools the stage names. */
  readonly tools: Readonly<Record<string, string>>
  /** In the key: a changed lock is a changed environment, also where the argv stays. */
  readonly lockfile: Digest | null
  /** In the key: the image's digest, never its tag. */
  readonly image: string | null
  /** In the key: the accelerator facts the stage names, e.g. `{"driver": "580.65"}`. */
  readonly accelerator: Readonly<Record<string, string>>
}

/** Digest of an action: sha256 over `schema`, a newline, and the action's canonical JSON. */
export function actionDigest(action: Action): Digest {
  // Fields in canonical (sorted) order; the parts that many actions share are spelled once.
  return digestOf(
    `${ACTION_SCHEMA}\n{"accelerator":${spell(action.accelerator)},"argv":${toCanonicalJson(action.argv)},` +
      `"environment":${spell(action.environment)},"image":${toCanonicalJson(action.image)},` +
      `"inputs":${spellInputs(action.inputs)},"lockfile":${toCanonicalJson(action.lockfile)},` +
      `"outputs":${spell(action.outputs)},"platform":${spell(action.platform)},"tools":${spell(action.tools)}}`,
  )
}

const spelled = new WeakMap<object, string>()

function spell(part: Action['outputs'] | Action['environment'] | Platform): string {
  const known = spelled.get(part)
  if (known !== undefined) return known
  // Records of strings, nulls and records of them, which is what CanonicalValue describes.
  const text = toCanonicalJson(part as unknown as Record<string, string>)
  spelled.set(part, text)
  return text
}

function spellInputs(inputs: Action['inputs']): string {
  let text = ''
  for (const name of Object.keys(inputs).sort()) {
    const input = inputs[name]
    if (!input) continue
    text += `${text && ','}${toCanonicalJson(name)}:{"as":${toCanonicalJson(input.as)},"digest":"${input.digest}","kind":"${input.kind}"}`
  }
  return `{${text}}`
}
