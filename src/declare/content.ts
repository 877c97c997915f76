// What a stage's inputs and outputs may be, as typed values: declarations (`tree('x')`), handles that wiring
// passes from one stage's outputs to another's inputs, and sources in the project.

import type { z } from 'zod'
import type { ContentKind } from '../model/stage.ts'

declare const CONTENT: unique symbol

/** One file of any bytes. */
export interface FileContent {
  readonly [CONTENT]: 'file'
}
/** One JSON file whose value is a `T`. */
export interface JsonContent<T> {
  readonly [CONTENT]: { readonly json: T }
}
/** A folder with all in it. */
export interface TreeContent {
  readonly [CONTENT]: 'tree'
}
export type Content = FileContent | JsonContent<unknown> | TreeContent

/** Declares an output at `path` in the output folder, or (without a path) what an input must be. */
export interface Spec<C extends Content, Path extends string | undefined = string | undefined> {
  readonly kind: ContentKind
  readonly path: Path
  readonly schema?: z.ZodType
  /** Only for the compiler. */
  readonly content?: C
}
export type InputSpec<C extends Content = Content> = Spec<C, undefined>
export type OutputSpec<C extends Content = Content> = Spec<C, string>

/** What wiring passes on: an output of a stage, or a source of the project. Made by a stage or by `source*`. */
export interface Handle<C extends Content> {
  readonly from: 'stage' | 'source'
  readonly kind: ContentKind
  /** The producing stage's name, or null for a source. */
  readonly stage: string | null
  /** The output's name, or the source's path from the project root. */
  readonly name: string
  readonly content?: C
}

/** A handle an input accepts: a JSON file is also a file, and its value must fit. */
export type Accepts<C extends Content> = C extends FileContent
  ? Handle<FileContent> | Handle<JsonContent<unknown>>
  : Handle<C>

/** One file. With a path: an output written there. Without: an input that is a file. */
export function file(): InputSpec<FileContent>
export function file(path: string): OutputSpec<FileContent>
export function file(path?: string): Spec<FileContent> {
  return { kind: 'file', path }
}

/** A folder. With a path: an output written there. Without: an input that is a folder. */
export function tree(): InputSpec<TreeContent>
export function tree(path: string): OutputSpec<TreeContent>
export function tree(path?: string): Spec<TreeContent> {
  return { kind: 'tree', path }
}

/** One JSON file, checked against `schema` when it is captured; a changed schema is a changed action. */
export function json<S extends z.ZodType>(schema: S): InputSpec<JsonContent<z.output<S>>>
export function json<S extends z.ZodType>(path: string, schema: S): OutputSpec<JsonContent<z.output<S>>>
export function json(pathOrSchema: string | z.ZodType, schema?: z.ZodType): Spec<JsonContent<unknown>> {
  return typeof pathOrSchema === 'string'
    ? { kind: 'json', path: pathOrSchema, ...(schema && { schema }) }
    : { kind: 'json', path: undefined, schema: pathOrSchema }
}

/** A file of the project, by its path from the project root. */
export function sourceFile(path: string): Handle<FileContent> {
  return { from: 'source', kind: 'file', stage: null, name: path }
}

/** A folder of the project, by its path from the project root. */
export function sourceTree(path: string): Handle<TreeContent> {
  return { from: 'source', kind: 'tree', stage: null, name: path }
}

/** A JSON file of the project, by its path from the project root; `schema` types what it holds. */
export function sourceJson<S extends z.ZodType>(path: string, _schema: S): Handle<JsonContent<z.output<S>>> {
  return { from: 'source', kind: 'json', stage: null, name: path }
}
