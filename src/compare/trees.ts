// Two folders compared file by file, each by what it is. Reads, changes nothing.

import { readFileSync } from 'node:fs'
import type { Tree, TreeEntry } from '../model/tree.ts'
import { type Allowance, compareBytes, type FileComparison } from './difference.ts'
import { compareJson } from './json.ts'
import { compareSafetensors } from './safetensors.ts'

export interface Side {
  readonly tree: Tree
  /** Absolute path of the folder. */
  readonly root: string
}

/** @param paths outputs to compare: paths within the trees, with all below them */
export function compareTrees(
  left: Side,
  right: Side,
  paths: readonly string[],
  allowed: Allowance,
): readonly FileComparison[] {
  const [a, b] = [left, right].map((side) => entriesOf(side.tree, paths)) as [Entries, Entries]
  const all = [...new Set([...a.keys(), ...b.keys()])].sort()
  return all.map((path) => compareEntry(path, [a.get(path), b.get(path)], [left.root, right.root], allowed))
}

type Entries = ReadonlyMap<string, TreeEntry>

function entriesOf(tree: Tree, paths: readonly string[]): Entries {
  const isMeant = (path: string): boolean => paths.some((top) => path === top || path.startsWith(`${top}/`))
  return new Map(
    tree.entries
      .filter((entry) => entry.type !== 'dir' && isMeant(entry.path))
      .map((entry) => [entry.path, entry]),
  )
}

function compareEntry(
  path: string,
  [a, b]: readonly [TreeEntry | undefined, TreeEntry | undefined],
  [rootA, rootB]: readonly [string, string],
  allowed: Allowance,
): FileComparison {
  if (!a || !b) return { path, verdict: 'different', difference: `only in the ${a ? 'kept' : 'new'} output` }
  if (a.type !== 'file' || b.type !== 'file') {
    const isSame = a.type === 'link' && b.type === 'link' && a.target === b.target
    return {
      path,
      verdict: isSame ? 'same' : 'different',
      difference: isSame ? undefined : 'another kind or target',
    }
  }
  if (a.digest === b.digest) return { path, verdict: 'same', difference: undefined }
  const [left, right] = [readFileSync(`${rootA}/${path}`), readFileSync(`${rootB}/${path}`)]
  if (path.endsWith('.safetensors')) return compareTensors(path, left, right, allowed)
  if (path.endsWith('.json')) return compareValues(path, left, right, allowed)
  return compareBytes(path, left, right)
}

function compareTensors(path: string, left: Buffer, right: Buffer, { tolerance }: Allowance): FileComparison {
  const found = compareSafetensors(left, right)
  if (!found) return { path, verdict: 'close', difference: 'the header alone' }
  const ulp = found.maxUlp === undefined ? '' : `, ${found.maxUlp} ULP`
  const difference = `tensor ${found.tensor}: ${found.what}${ulp}`
  return { path, verdict: found.maxAbs <= tolerance ? 'close' : 'different', difference }
}

function compareValues(path: string, left: Buffer, right: Buffer, allowed: Allowance): FileComparison {
  const found = compareJson(JSON.parse(left.toString('utf8')), JSON.parse(right.toString('utf8')), allowed)
  if (found.at !== undefined) return { path, verdict: 'different', difference: `${found.at}: ${found.what}` }
  return {
    path,
    verdict: 'close',
    difference: `ignored fields, or numbers by ${found.largest.toExponential(2)} at most`,
  }
}
