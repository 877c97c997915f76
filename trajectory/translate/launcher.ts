// What a source does not say of itself and whoever launched it must: given, never made up.

import { z } from 'zod'
import { isMutableRevision } from '../revision.ts'
import { TranslateError } from './translate-error.ts'

const text = z.string().min(1)
const revision = text.refine(
  (value) => !isMutableRevision(value),
  'an immutable revision is needed, no alias',
)
/** A real version, another after each update: an upstream that leaves it at one value says nothing. */
const version = z.union([z.int().nonnegative(), text])

const launcher = z.strictObject({
  /** Version of the upstream package that wrote the source. */
  sourceVersion: text,
  sourceKind: z.enum(['captured', 'fixture']),
  policy: z.strictObject({
    revision,
    /** The only version whose calls are rows. */
    version,
    tokenizerId: text,
    tokenizerRevision: revision,
    chatTemplateSha256: z.string().regex(/^[0-9a-f]{64}$/),
    /** Where the source does not name the model. */
    modelId: text.optional(),
  }),
  harness: z.strictObject({ name: text, version: text, revision }),
  scorer: z.strictObject({ name: text, revision }),
  /** By rollout id: what the source lacks of each. */
  episodes: z
    .record(
      z.string(),
      z.strictObject({
        task: text.optional(),
        modelId: text.optional(),
        group: text.optional(),
        seed: z.int().nonnegative().optional(),
        policyVersion: version.optional(),
        reward: z.number().optional(),
        scorer: text.optional(),
      }),
    )
    .default({}),
})

/** What the launcher says. */
export type Launcher = z.output<typeof launcher>
/** What the launcher says, as given: fields with a default may be absent. */
export type LauncherInput = z.input<typeof launcher>

/** @param versions upstream versions the translator was written against. @throws TranslateError */
export function readLauncher(value: unknown, versions: readonly string[]): Launcher {
  const parsed = launcher.safeParse(value)
  if (!parsed.success) {
    throw new TranslateError(
      parsed.error.issues.map((issue) => ({
        rule: 'launcher-field',
        rollout: null,
        path: `$launcher.${issue.path.join('.')}`,
        message: issue.message,
      })),
    )
  }
  const { sourceVersion } = parsed.data
  if (!versions.includes(sourceVersion)) {
    throw new TranslateError([
      {
        rule: 'source-version',
        rollout: null,
        path: '$launcher.sourceVersion',
        message: `version ${sourceVersion} of the source is not one this translator knows: ${versions.join(', ')}`,
      },
    ])
  }
  return parsed.data
}
