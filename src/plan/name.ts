// How messages speak of a stage: by name and by the line that declares it.

import type { Stage } from '../model/stage.ts'

/** `"name" (file:line)`, for messages. */
export function nameStage(stage: Stage): string {
  const place = stage.where()
  return place ? `"${stage.name}" (${place.file}:${place.line})` : `"${stage.name}"`
}

/** `file:line` of the declaration, where it is known. */
export function placeOf(stage: Stage): string | undefined {
  const place = stage.where()
  return place && `${place.file}:${place.line}`
}
