// What every store promises, as tests: run over each implementation by store.test.ts.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { hashTree } from '../../src/capture/tree.ts'
import { digestOf } from '../../src/model/digest.ts'
import type { Store } from '../../src/model/ports.ts'
import type { Tree } from '../../src/model/tree.ts'
import { removeAll } from '../rig/project.ts'
import { sampleResult } from '../rig/sample-result.ts'

export interface Subject {
  readonly store: Store
  /** Changes one byte of what the store holds of this blob, where it rests. */
  readonly damage: (tree: Tree, path: string) => void | Promise<void>
}

/** @param open a new, empty store; `root` is a folder of its own on the same file system */
export function storeContract(name: string, open: (root: string) => Subject | Promise<Subject>): void {
  const roots: string[] = []
  afterAll(() => {
    for (const root of roots) removeAll(root)
  })
  const setUp = async (): Promise<Subject & { readonly root: string }> => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'pilot-store-')))
    roots.push(root)
    return { root, ...(await open(join(root, 'store'))) }
  }

  test(`${name}: a tree comes back as it went in: bytes, modes, links, empty folders`, async () => {
    const { store, root } = await setUp()
    const { tree, folder } = await sampleTree(root)
    await store.sendTree(tree, folder)

    const fetched = await store.fetchTree(tree.digest, join(root, 'back'))

    expect(fetched?.digest).toBe(tree.digest)
    expect((await hashTree(join(root, 'back'))).digest).toBe(tree.digest)
    expect(readFileSync(join(root, 'back/folder/plain'), 'utf8')).toBe('plain\n')
    expect(statSync(join(root, 'back/tool')).mode & 0o111).not.toBe(0)
    expect(readlinkSync(join(root, 'back/link'))).toBe('folder/plain')
    expect(readdirSync(join(root, 'back/empty'))).toEqual([])
    expect(existsSync(folder), 'the sent folder stays the caller’s').toBe(true)
  })

  test(`${name}: what was never sent is not there`, async () => {
    const { store, root } = await setUp()

    expect(await store.hasTree(digestOf('nothing'))).toBe(false)
    expect(await store.fetchTree(digestOf('nothing'), join(root, 'back'))).toBeUndefined()
    expect(existsSync(join(root, 'back'))).toBe(false)
    expect(await store.getResult(digestOf('nothing'))).toBeUndefined()
    expect(await store.getLog(digestOf('nothing'))).toBeUndefined()
  })

  test(`${name}: a damaged tree is never given out, and can be sent again`, async () => {
    const { store, root, damage } = await setUp()
    const { tree, folder } = await sampleTree(root)
    await store.sendTree(tree, folder)
    await damage(tree, 'folder/plain')

    const damaged = await store.fetchTree(tree.digest, join(root, 'back'))
    await store.sendTree(tree, folder)
    const healed = await store.fetchTree(tree.digest, join(root, 'again'))

    expect(damaged).toBeUndefined()
    expect(existsSync(join(root, 'back'))).toBe(false)
    expect(healed?.digest).toBe(tree.digest)
  })

  test(`${name}: the first result of an action stays, unless it is replaced`, async () => {
    const { store, root } = await setUp()
    const { tree, folder } = await sampleTree(root)
    await store.sendTree(tree, folder)
    const [first, second] = ['first', 'second'].map((stage) => sampleResult({ tree, stage }))
    if (!first || !second) throw new Error('two results were made')
    const key = first.actionDigest

    await store.putResult(first, { replace: false })
    await store.putResult(second, { replace: false })
    const kept = await store.getResult(key)
    await store.putResult(second, { replace: true })
    const replaced = await store.getResult(key)

    expect(kept).toEqual(first)
    expect(replaced).toEqual(second)
  })

  test(`${name}: a log comes back byte for byte`, async () => {
    const { store } = await setUp()
    const text = Buffer.from('2026-01-01T00:00:00.000Z out| grün\n')

    await store.putLog(digestOf(text), text)

    expect(await store.getLog(digestOf(text))).toEqual(text)
  })
}

async function sampleTree(root: string): Promise<{ readonly tree: Tree; readonly folder: string }> {
  const folder = join(root, 'sample')
  mkdirSync(join(folder, 'folder'), { recursive: true })
  mkdirSync(join(folder, 'empty'))
  writeFileSync(join(folder, 'folder/plain'), 'plain\n')
  writeFileSync(join(folder, 'tool'), '#!/bin/sh\n')
  chmodSync(join(folder, 'tool'), 0o755)
  symlinkSync('folder/plain', join(folder, 'link'))
  return { tree: await hashTree(folder), folder }
}
