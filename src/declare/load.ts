// pipeline.ts (and a recipe) -> model/stage.ts's Pipeline. Imports the file by path, through Node's own type
// stripping, and says file, line and what to do when that fails.

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { PilotError } from '../model/error.ts'
import { didYouMean } from '../model/near.ts'
import type { Pipeline, Stage } from '../model/stage.ts'
import { hasTag, pinImage, readImageLock } from './image-lock.ts'
import { formatIssues } from './issues.ts'
import { type DefinedPipeline, PIPELINE } from './pipeline.ts'
import { fromProjectRoot, setProjectRoot } from './place.ts'
import { NO_TOOLS, type StageUse } from './stage.ts'

const FILE_NAMES = ['pipeline.ts', 'pipeline.mts', 'pipeline.js', 'pipeline.mjs']

/** The pipeline file of the project that `start` lies in: looked for there and upwards.
 *  @returns absolute real path. @throws PilotError `no-pipeline` */
export function findPipeline(start: string): string {
  for (let folder = realpathSync(start); ; folder = dirname(folder)) {
    for (const name of FILE_NAMES) {
      const path = join(folder, name)
      if (existsSync(path)) return path
    }
    if (folder === dirname(folder)) break
  }
  throw new PilotError({
    code: 'no-pipeline',
    blame: 'user',
    what: `there is no pipeline.ts in ${start} or above it`,
    hint: 'start one here: pilot init',
  })
}

/** Loads the pipeline with the recipe of that name (or its default).
 *  @throws PilotError `pipeline-syntax`, `pipeline-failed`, `not-a-pipeline`, `unknown-recipe`, `invalid-recipe` */
export async function loadPipeline(
  file: string,
  recipeName: string | undefined,
): Promise<{ readonly pipeline: Pipeline; readonly recipe: string | null }> {
  const root = dirname(file)
  setProjectRoot(root)
  const defined = await importPipeline(file)
  const name = recipeName ?? defined.defaultRecipe
  const recipe = readRecipe(defined, root, name)
  const declared: Stage[] = []
  let checks: Pipeline['checks']
  try {
    const shared = defined.image(recipe)
    for (const use of defined.stages(recipe)) declared.push(withImage(use, shared))
    checks = defined.checks(recipe)
  } catch (error) {
    throw failedError(file, error)
  }
  const images = new Set(
    declared.flatMap(({ image }) => (image !== undefined && hasTag(image) ? [image] : [])),
  )
  const stages = images.size > 0 ? pinned(declared, root) : declared
  const pipeline = { stages, locks: defined.locks, checks, images: [...images], store: defined.store }
  return { pipeline, recipe: defined.recipe ? (name ?? null) : null }
}

function withImage({ stage, takesImage }: StageUse, shared: string | undefined): Stage {
  if (shared === undefined || !takesImage) return stage
  return { ...stage, image: shared, isolation: 'container', tools: NO_TOOLS }
}

function pinned(stages: readonly Stage[], root: string): Stage[] {
  const lock = readImageLock(root)
  return stages.map((stage) => {
    return stage.image === undefined ? stage : { ...stage, image: pinImage(stage.image, lock) }
  })
}

async function importPipeline(file: string): Promise<DefinedPipeline> {
  let loaded: { readonly default?: unknown }
  try {
    loaded = await import(pathToFileURL(file).href)
  } catch (error) {
    throw importError(file, error)
  }
  const defined = loaded.default
  if (typeof defined === 'object' && defined !== null && PIPELINE in defined) {
    // Only definePipeline puts that symbol there.
    return defined as DefinedPipeline
  }
  throw new PilotError({
    code: 'not-a-pipeline',
    blame: 'user',
    what: `${file} has no pipeline as its default export`,
    where: `${file}:1`,
    hint: "end it with: export default definePipeline({ stages: () => […] }), from 'hessian-pilot'",
  })
}

function readRecipe(defined: DefinedPipeline, root: string, name: string | undefined): unknown {
  if (!defined.recipe) {
    if (name === undefined) return undefined
    throw new PilotError({
      code: 'unknown-recipe',
      blame: 'user',
      what: `this pipeline takes no recipe, but "${name}" was asked for`,
      hint: 'leave --recipe out, or give definePipeline a `recipe` schema',
    })
  }
  const path = join(root, 'recipes', `${name}.json`)
  if (name === undefined || !/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name) || !existsSync(path)) {
    const known = recipeNames(root)
    throw new PilotError({
      code: 'unknown-recipe',
      blame: 'user',
      what:
        name === undefined ? 'no recipe was named' : `there is no recipe "${name}"${didYouMean(name, known)}`,
      hint: known.length > 0 ? `recipes here: ${known.join(', ')}` : 'write recipes/<name>.json',
    })
  }
  const parsed = defined.recipe.safeParse(parseRecipe(path))
  if (parsed.success) return parsed.data
  throw new PilotError({
    code: 'invalid-recipe',
    blame: 'user',
    what: `recipe "${name}" does not fit its schema:\n${formatIssues(parsed.error.issues)}`,
    where: path,
  })
}

function parseRecipe(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new PilotError({
      code: 'invalid-recipe',
      blame: 'user',
      what: 'the recipe is not JSON',
      where: path,
      cause: error,
    })
  }
}

function recipeNames(root: string): readonly string[] {
  const folder = join(root, 'recipes')
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length))
    .sort()
}

function importError(file: string, error: unknown): PilotError {
  if (error instanceof PilotError) return error
  const code = codeOf(error)
  if (error instanceof SyntaxError || code.includes('TYPESCRIPT_SYNTAX')) {
    const { where, text } = locateSyntaxError(file, error)
    return new PilotError({
      code: 'pipeline-syntax',
      blame: 'user',
      what: `the pipeline cannot be read: ${text}`,
      where,
      hint: code.startsWith('ERR_UNSUPPORTED')
        ? 'Node strips types but compiles nothing: no enum, namespace or parameter property (tsc: erasableSyntaxOnly)'
        : 'mend that line; `npx tsc --noEmit` shows every mistake at once',
    })
  }
  return failedError(file, error)
}

/** A mistake found while the user's own code ran: names the deepest frame that is theirs. */
function failedError(file: string, error: unknown): PilotError {
  if (error instanceof PilotError) return error
  const message = error instanceof Error ? error.message : String(error)
  const frame = error instanceof Error ? userFrame(error, dirname(file)) : undefined
  return new PilotError({
    code: 'pipeline-failed',
    blame: 'user',
    what: `the pipeline could not be loaded: ${message}`,
    where: frame ?? file,
    hint:
      codeOf(error) === 'ERR_MODULE_NOT_FOUND'
        ? 'check the path, write the extension (./stage.ts), and install what is imported: npm install'
        : 'mend that line; `npx tsc --noEmit` shows type mistakes before anything runs',
    cause: error,
  })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

function userFrame(error: Error, root: string): string | undefined {
  const prefix = pathToFileURL(root).href
  for (const match of (error.stack ?? '').matchAll(/(file:\/\/[^\s()]+?):(\d+):\d+/g)) {
    const [, url = '', line] = match
    if (url.startsWith(prefix) && !url.includes('/node_modules/')) {
      return `${relative(root, decodeURIComponent(url.slice('file://'.length)))}:${line}`
    }
  }
  return undefined
}

/** An import reports no line of a syntax error, so the file is checked once more by `node --check`, which does. */
function locateSyntaxError(file: string, error: unknown): { readonly where: string; readonly text: string } {
  const message = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
  const inStack =
    error instanceof Error ? /(?:file:\/\/)?(\/[^\n()]+?):(\d+)\n/.exec(error.stack ?? '') : null
  const checked = inStack
    ? undefined
    : spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' }).stderr
  const found = inStack ?? (checked ? /(?:file:\/\/)?(\/[^\n()]+?):(\d+)\n/.exec(checked) : null)
  return {
    where: found ? `${fromProjectRoot(decodeURIComponent(found[1] ?? ''))}:${found[2]}` : file,
    text: message,
  }
}
