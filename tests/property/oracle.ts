// The oracle: what a build with early cut-off does, in a page, with nothing of the engine in it. A stage is executed
// exactly when no intact result is kept for (its parameter, the names and contents of its inputs).

import { fold, readValue } from '../rig/fold-executor.ts'

export interface Node {
  readonly name: string
  readonly param: number
  /** Stages read, by index; all lower than its own. */
  readonly reads: readonly number[]
  /** Text of the stage's own source file: a number, perhaps after a comment line. */
  readonly source: string
}

export interface Oracle {
  /** Runs the DAG. @returns the keys executed, sorted */
  run(nodes: readonly Node[]): readonly string[]
  /** Key and output of a node, after a run. */
  look(nodes: readonly Node[], index: number): { readonly key: string; readonly value: number }
  /** Destroys what is kept under a key. */
  damage(key: string): void
}

export function toKey(param: number, read: readonly number[], source: string): string {
  return JSON.stringify([param, read, source])
}

export function openOracle(): Oracle {
  const kept = new Map<string, number>()
  const evaluate = (nodes: readonly Node[], onRun: (key: string) => void) => {
    const done: { key: string; value: number }[] = []
    for (const node of nodes) {
      const read = node.reads.map((index) => done[index]?.value ?? 0)
      const key = toKey(node.param, read, node.source)
      const known = kept.get(key)
      const value = known ?? fold(node.param, [...read, readValue(node.source)])
      if (known === undefined) onRun(key)
      kept.set(key, value)
      done.push({ key, value })
    }
    return done
  }
  return {
    run: (nodes) => {
      const executed: string[] = []
      evaluate(nodes, (key) => executed.push(key))
      return executed.sort()
    },
    look: (nodes, index) => evaluate(nodes, () => undefined)[index] ?? { key: '', value: Number.NaN },
    damage: (key) => void kept.delete(key),
  }
}
