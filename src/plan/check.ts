// What is wrong with one stage's declaration, by itself: names, output paths, overlaps. TypeScript sees most of it;
// a pipeline written in JavaScript, or computed names, come this far.

import { PilotError } from '../model/error.ts'
import { FOLDER_INPUT, type Stage } from '../model/stage.ts'
import { nameStage, placeOf } from './name.ts'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/
const IMAGE = /^[^\s@]+@sha256:[0-9a-f]{64}$/

/** @throws PilotError `invalid-name`, `invalid-stage`, `overlapping-outputs` */
export function checkStage(stage: Stage): void {
  const refuse = refuser(stage)
  if (!NAME.test(stage.name)) {
    throw new PilotError({
      code: 'invalid-name',
      blame: 'user',
      what: `${JSON.stringify(stage.name)} cannot name a stage`,
      where: placeOf(stage),
      hint: NAME_HINT,
    })
  }
  if (stage.argv.length === 0) refuse('run returned no program', 'return [program, ...arguments]')
  stage.argv.forEach((word, i) => {
    if (typeof word !== 'string')
      refuse(`argument ${i} of run is ${describe(word)}, not a string`, 'wrap it: String(…)')
    if (word.includes('\0')) refuse(`argument ${i} of run holds a NUL byte`)
  })
  for (const name in stage.inputs) {
    if (!NAME.test(name)) refuse(`${JSON.stringify(name)} cannot name an input`, NAME_HINT, 'invalid-name')
    const input = stage.inputs[name]
    if (input?.from === 'source') checkPath(input.path, `input "${name}"`, refuse)
  }
  once(stage.outputs, () => checkOutputs(stage, refuse))
  once(stage.environment, () => checkEnvironment(stage, refuse))
  checkNumbers(stage, refuse)
  checkImage(stage, refuse)
  if (stage.lockfile !== undefined && !(stage.lockfile in stage.inputs)) {
    refuse(`lockfile names input "${stage.lockfile}", which the stage has not`)
  }
}

function checkImage({ image, isolation }: Stage, refuse: Refuse): void {
  if (image === undefined) {
    if (isolation === 'container')
      refuse('isolation is "container", and there is no image', 'give it an image')
    return
  }
  if (!IMAGE.test(image)) {
    const hint = /:[\w][\w.-]*$/.test(image)
      ? 'lock the tag: pilot lock; or name it by digest: name@sha256:…'
      : 'name it by digest: name@sha256:…; or by a tag, name:tag, and lock that: pilot lock'
    refuse(`image "${image}" is not pinned`, hint, 'image-not-locked')
  }
  if (isolation !== 'container') {
    refuse(`isolation is "${isolation}", but it has an image`, 'leave `isolation` out, or say `image: null`')
  }
}

const checked = new WeakSet<object>()

/** Stages of one definition share their declarations: each is looked at once. */
function once(declaration: object, check: () => void): void {
  if (checked.has(declaration)) return
  check()
  checked.add(declaration)
}

const NAME_HINT = 'use letters, digits, ".", "_" and "-", beginning with a letter or digit, 100 at most'

type Refuse = (what: string, hint?: string, code?: string) => never

function refuser(stage: Stage): Refuse {
  return (what, hint, code = 'invalid-stage') => {
    throw new PilotError({
      code,
      blame: 'user',
      what: `stage ${nameStage(stage)}: ${what}`,
      where: placeOf(stage),
      hint,
    })
  }
}

function checkOutputs(stage: Stage, refuse: Refuse): void {
  const paths: (readonly [string, string])[] = []
  for (const name in stage.outputs) {
    if (!NAME.test(name)) refuse(`${JSON.stringify(name)} cannot name an output`, NAME_HINT, 'invalid-name')
    const path = stage.outputs[name]?.path ?? ''
    checkPath(path, `output "${name}"`, refuse)
    for (const [other, taken] of paths) {
      if (path === taken || path.startsWith(`${taken}/`) || taken.startsWith(`${path}/`)) {
        refuse(
          `outputs "${other}" (${taken}) and "${name}" (${path}) overlap`,
          'give each output a path of its own',
          'overlapping-outputs',
        )
      }
    }
    paths.push([name, path])
  }
  if (paths.length === 0)
    refuse('declares no output', 'a stage is kept for its outputs: declare at least one')
}

function checkPath(path: string, whose: string, refuse: Refuse): void {
  const parts = path.split('/')
  const bad =
    path === '' ||
    path.startsWith('/') ||
    path.includes('\\') ||
    path.includes('\0') ||
    !path.isWellFormed() ||
    parts.some((part) => part === '' || part === '.' || part === '..')
  if (bad) {
    refuse(
      `${whose} has the path ${JSON.stringify(path)}`,
      'use a relative path with "/", without "." or ".."',
      'invalid-path',
    )
  }
}

function checkEnvironment(stage: Stage, refuse: Refuse): void {
  const { keep, pass, secrets, set } = stage.environment
  const seen = new Map<string, string>()
  for (const [list, names] of Object.entries({ keep, pass, secrets, set: Object.keys(set) })) {
    for (const name of names) {
      if (!VARIABLE.test(name))
        refuse(`env.${list} names ${JSON.stringify(name)}, which no environment variable can be called`)
      const twin = seen.get(name)
      if (twin !== undefined) refuse(`${name} is in env.${twin} and in env.${list}`, 'name it once')
      if (RESERVED.has(name)) refuse(`env.${list} names ${name}, which pilot sets itself`)
      seen.set(name, list)
    }
  }
  for (const name in set) {
    if (typeof set[name] !== 'string')
      refuse(`env.set.${name} is ${describe(set[name])}, not a string`, 'wrap it: String(…)')
  }
}

const RESERVED = new Set(['HOME', 'TMPDIR', 'PATH'])

function checkNumbers(stage: Stage, refuse: Refuse): void {
  const { cpus, memoryMiB, gpus } = stage.resources
  if (!(cpus > 0)) refuse(`resources.cpus is ${cpus}`, 'a number above 0')
  if (!(memoryMiB >= 0)) refuse(`resources.memoryMiB is ${memoryMiB}`, 'a number of MiB, or leave it out')
  if (!(Number.isInteger(gpus) && gpus >= 0)) refuse(`resources.gpus is ${gpus}`, 'a whole number')
  if (stage.timeoutMs !== undefined && !(stage.timeoutMs > 0))
    refuse(`timeoutMs is ${stage.timeoutMs}`, 'milliseconds above 0')
  if (!(Number.isInteger(stage.retries) && stage.retries >= 0))
    refuse(`retries is ${stage.retries}`, 'a whole number')
  if (stage.inputs[FOLDER_INPUT]?.from === 'stage')
    refuse(`an input may not be called "${FOLDER_INPUT}"`, "that is the stage's own folder")
}

function describe(value: unknown): string {
  return value === null ? 'null' : typeof value
}
