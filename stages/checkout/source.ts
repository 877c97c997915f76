import { z } from 'zod'

/** A source distribution of a Python package, by name, version and the sha256 of its .tar.gz. */
const archive = z.strictObject({
  kind: z.literal('archive'),
  name: z.string().regex(/^[a-z0-9][a-z0-9-]*$/),
  version: z.string().regex(/^[0-9][0-9a-z.]*$/),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})

/** A commit by its full digest, never a branch or tag: those move. */
const git = z.strictObject({
  kind: z.literal('git'),
  /** URL or path of the repository. */
  url: z.string().min(1),
  commit: z
    .string()
    .regex(/^[0-9a-f]{40}$/, 'a full commit of 40 hex digits is needed: branches and tags move'),
})

export const source = z.discriminatedUnion('kind', [archive, git])
export type ArchiveSource = z.output<typeof archive>
export type GitSource = z.output<typeof git>
export type Source = ArchiveSource | GitSource
