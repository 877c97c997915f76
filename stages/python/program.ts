// What every stage that runs Python declares: its environment, the launcher and the library are inputs like any other.

import { tree } from 'hessian-pilot'
import { PYTHON } from './variables.ts'

/** Inputs of a Python stage. */
export const PYTHON_INPUTS = {
  /** Of `sync`: the locked environment as wheels. */
  environment: tree(),
  /** stages/launcher. */
  launcher: tree(),
  /** stages/lib. */
  lib: tree(),
}

/** Variables of a Python stage. */
export const PYTHON_ENV = { pass: PYTHON }

interface Paths {
  readonly node: string
  readonly src: string
  readonly inputs: { readonly environment: string; readonly launcher: string; readonly lib: string }
}

/** argv that runs a program of the stage's own folder: `python <program> --<name> <value>…`. */
export function pythonArgv(
  { node, src, inputs }: Paths,
  program: string,
  flags: Readonly<Record<string, string>>,
): readonly string[] {
  const words = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
  return [node, `${inputs.launcher}/launch.ts`, inputs.environment, inputs.lib, `${src}/${program}`, ...words]
}

/** A flag's value that the launcher turns into the path of a file with this JSON. */
export function jsonArgument(value: unknown): string {
  return `@json:${JSON.stringify(value)}`
}
