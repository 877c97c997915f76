// Entries of the cache: a folder saved under a key that never changes again. What is written anew gets the same
// beginning and another ending, and is read by the beginning: the service gives the newest.

import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { PilotError } from '../../model/error.ts'
import { removeFolder } from '../local/disk.ts'
import { BUNDLE, type CacheOrder } from './protocol.ts'
import type { Environment } from './service.ts'
import { type Setback, troubleIn } from './verdict.ts'
import { openWorkers } from './workers.ts'

export interface Entries {
  has(prefix: string): Promise<boolean>
  /** Calls `read` with the newest entry's folder. Undefined where there is none; no content where there is one that
   *  does not unpack, or that `read` makes nothing of. */
  restore<T>(
    prefix: string,
    read: (bundle: string) => Promise<T | undefined>,
  ): Promise<{ readonly content: T | undefined } | undefined>
  /** Keeps what `fill` puts into the new folder. @param anew though there is one already */
  save(prefix: string, anew: boolean, fill: (bundle: string) => Promise<void>): Promise<void>
}

export interface EntriesOptions {
  readonly tempRoot: string
  readonly environment: Environment
  readonly onWarning: (message: string) => void
}

/** Of the first entry: of two that write it at the same time, the service lets one. */
const FIRST = 'first'

export function openEntries({ tempRoot, environment, onWarning }: EntriesOptions): Entries {
  const workers = openWorkers(environment)
  const token = environment['ACTIONS_RUNTIME_TOKEN'] ?? ''
  const said = new Set<string>()
  const warnOnce = (message: string): void => {
    if (!said.has(message)) onWarning(message)
    said.add(message)
  }

  /** The key that was found or written, and what went wrong. @throws RemoteError, or an Error with the errno of a full disk */
  async function perform(
    order: CacheOrder,
  ): Promise<{ readonly key: string | null; readonly trouble?: Setback }> {
    const { key, text } = await workers.perform(order)
    const trouble = troubleIn(text, token)
    if (!trouble) return { key }
    if (trouble.type === 'service') throw trouble.error
    if (trouble.type === 'disk-full')
      throw Object.assign(new Error(trouble.message), { code: 'ENOSPC', path: order.folder })
    return { key: null, trouble }
  }

  async function inFolder<T>(act: (folder: string) => Promise<T>): Promise<T> {
    const folder = makeFolder(tempRoot)
    try {
      return await act(folder)
    } finally {
      removeFolder(folder)
    }
  }

  const has = (prefix: string): Promise<boolean> =>
    inFolder(async (folder) => {
      const { key, trouble } = await perform({ type: 'lookup', folder, key: prefix })
      if (trouble) warnOnce(`the Actions cache cannot be read: ${trouble.message}`)
      return key?.startsWith(prefix) ?? false
    })

  return {
    has,
    restore: (prefix, read) =>
      inFolder(async (folder) => {
        const { key, trouble } = await perform({ type: 'restore', folder, key: prefix })
        if (trouble) warnOnce(`the entry ${prefix}… of the Actions cache is not used: ${trouble.message}`)
        if (trouble?.type === 'damaged' || trouble?.type === 'gone') return { content: undefined }
        if (!key?.startsWith(prefix)) return undefined
        const content = await read(`${folder}/${BUNDLE}`)
        if (content === undefined)
          warnOnce(`the entry ${key} of the Actions cache is not what it is named after, and is not used`)
        return { content }
      }),
    save: (prefix, anew, fill) =>
      inFolder(async (folder) => {
        mkdirSync(`${folder}/${BUNDLE}`)
        await fill(`${folder}/${BUNDLE}`)
        const first = await perform({ type: 'save', folder, key: prefix + (anew ? freshEnding() : FIRST) })
        if (first.trouble?.type === 'taken') {
          // By a job that writes the same now, or that died over it: then the place stays empty.
          if (await has(prefix)) return
          const second = await perform({ type: 'save', folder, key: prefix + freshEnding() })
          if (second.key !== null) return
        }
        if (first.key === null)
          warnOnce(`nothing is kept in the Actions cache: ${first.trouble?.message ?? 'it does not say why'}`)
      }),
  }
}

function freshEnding(): string {
  return `${Date.now().toString(36)}-${randomBytes(4).toString('hex')}`
}

/** The library puts the path into a command line unquoted. */
const PLAIN = /^[\w/.,:+@=-]+$/

function makeFolder(tempRoot: string): string {
  const root = [tempRoot, tmpdir()].find((path) => PLAIN.test(path))
  if (root !== undefined) return mkdtempSync(`${root}/actions-cache-`)
  throw new PilotError({
    code: 'actions-cache-path',
    blame: 'environment',
    what: 'the Actions cache cannot work in a folder with such a path',
    where: tempRoot,
    hint: 'set TMPDIR to a path without spaces and quotes',
  })
}
