// definePipeline: the whole DAG of a project, as a function of its recipe. The default export of pipeline.ts.

import type { z } from 'zod'
import type { StageUse } from './stage.ts'

export interface PipelineDefinition<R extends z.ZodType> {
  /** Schema of `recipes/<name>.json`. Without one the pipeline takes no recipe. */
  readonly recipe?: R
  /** The recipe used without `--recipe`. */
  readonly defaultRecipe?: string
  /** What `pilot lock` runs, by the name of the lock: a program and its arguments, started in the project's folder.
   *  It writes under `locks/`; with `--check` added it writes nothing and exits 0 only where the lock is up to date.
   *  `{node}` is the Node.js that runs pilot. */
  readonly locks?: Readonly<Record<string, readonly string[]>>
  /** What `pilot doctor` runs besides its own looking, by the name of what is looked for: a program and its arguments,
   *  started in the project's folder. It exits 0 and prints what it found; else it says on stderr what is missing, and
   *  from the second line on what to do. `{node}` as above. */
  readonly checks?: (recipe: z.output<R>) => Readonly<Record<string, readonly string[]>>
  /** The store beyond this machine, `s3://bucket/prefix?region=…&endpoint=…`; PILOT_STORE goes before it. */
  readonly store?: string
  /** The image of every stage that names none: by digest, or by a tag that `pilot lock` has locked. A stage with
   *  `image: null` runs without one. */
  readonly image?: string | ((recipe: z.output<R>) => string | undefined)
  /** The stages, in any order; wiring gives the edges. */
  readonly stages: (recipe: z.output<R>) => Iterable<StageUse>
}

/** Marks a default export as a pipeline, also where two copies of this package meet. */
export const PIPELINE = Symbol.for('hessian-pilot.pipeline')

export interface DefinedPipeline {
  readonly [PIPELINE]: true
  readonly recipe: z.ZodType | undefined
  readonly defaultRecipe: string | undefined
  readonly locks: Readonly<Record<string, readonly string[]>>
  readonly checks: (recipe: unknown) => Readonly<Record<string, readonly string[]>>
  readonly store: string | undefined
  readonly image: (recipe: unknown) => string | undefined
  readonly stages: (recipe: unknown) => Iterable<StageUse>
}

/** Declares the pipeline of a project. */
export function definePipeline<R extends z.ZodType = z.ZodUndefined>(
  definition: PipelineDefinition<R>,
): DefinedPipeline {
  const { image } = definition
  return {
    [PIPELINE]: true,
    recipe: definition.recipe,
    defaultRecipe: definition.defaultRecipe,
    locks: definition.locks ?? {},
    store: definition.store,
    image: (recipe) => (typeof image === 'function' ? image(recipe as z.output<R>) : image),
    checks: (recipe) => definition.checks?.(recipe as z.output<R>) ?? {},
    // load.ts passes what `definition.recipe` parsed, or undefined where there is none.
    stages: (recipe) => definition.stages(recipe as z.output<R>),
  }
}
