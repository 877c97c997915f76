// What the store costs a run of N one-file stages, cold and with nothing to do. Prints figures, asserts nothing.
//   npx node tests/bench/store-noop.ts [N] [FOLDER ON THE FILE SYSTEM TO BE MEASURED]

import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hashTree } from '../../src/capture/tree.ts'
import type { Digest } from '../../src/model/digest.ts'
import { digestOf } from '../../src/model/digest.ts'
import type { LocalStore } from '../../src/model/ports.ts'
import { openLocalStore } from '../../src/store/local.ts'
import { sampleResult } from '../rig/sample-result.ts'

const count = Number(process.argv[2] ?? 10_000)
const work = mkdtempSync(join(process.argv[3] ?? tmpdir(), 'pilot-bench-'))
const keys = Array.from({ length: count }, (_, i) => digestOf(`key ${i}`))

function open(runId: string): LocalStore {
  return openLocalStore({
    root: join(work, 'artifacts'),
    runId,
    host: 'bench',
    onDamage: (digest, found) => console.log('damaged', digest, found),
  })
}

function timed<T>(what: string, times: number, act: () => T): T {
  const start = performance.now()
  const answer = act()
  print(what, performance.now() - start, times)
  return answer
}

function print(what: string, ms: number, times: number): void {
  const each = times > 1 ? `  ${((ms / times) * 1000).toFixed(1)} us each` : ''
  console.log(`${what.padEnd(34)} ${ms.toFixed(1).padStart(8)} ms${each}`)
}

async function cold(): Promise<void> {
  using store = open('cold')
  const spent = { make: 0, hash: 0, claim: 0, adopt: 0, put: 0, release: 0, record: 0, latest: 0 }
  let start = performance.now()
  const lap = (name: keyof typeof spent): void => {
    const now = performance.now()
    spent[name] += now - start
    start = now
  }
  for (const [i, key] of keys.entries()) {
    store.claim(key)
    lap('claim')
    const dir = store.makeTemp('out')
    writeFileSync(join(dir, 'out'), `bytes of stage ${i}\n`)
    lap('make')
    const tree = await hashTree(dir)
    lap('hash')
    store.adoptTree(tree, dir)
    lap('adopt')
    await store.putResult(sampleResult({ key, tree, stage: `s${i}` }), { replace: false })
    lap('put')
    store.release(key)
    lap('release')
    store.recordStage({
      stage: `s${i}`,
      runId: 'cold',
      key,
      outcome: 'executed',
      wallMs: 1,
      at: '2026-01-01',
    })
    lap('record')
    store.setLatest(`s${i}`, tree.digest)
    lap('latest')
  }
  for (const [name, ms] of Object.entries(spent)) print(`cold: ${name}`, ms, count)
  timed('cold: flush', 1, () => store.flush())
}

function noop(): void {
  const start = performance.now()
  const store = timed('no-op: open', 1, () => open('noop'))
  const trees = timed('no-op: lookup', count, () => keys.map((key) => hit(store, key)))
  timed('no-op: stat cache', count, () => {
    for (const path of sources) if (!store.stats.get(path, statSync(path))) throw new Error('not cached')
  })
  timed('no-op: record', count, () => {
    for (const [i, key] of keys.entries())
      store.recordStage({ stage: `s${i}`, runId: 'noop', key, outcome: 'hit', wallMs: 0, at: '2026-01-01' })
  })
  timed('no-op: latest', count, () => {
    for (const [i, tree] of trees.entries()) store.setLatest(`s${i}`, tree)
  })
  timed('no-op: flush', 1, () => store.flush())
  timed('no-op: close', 1, () => store[Symbol.dispose]())
  print('no-op: in all', performance.now() - start, 1)
}

function hit(store: LocalStore, key: Digest): Digest {
  const brief = store.lookup(key)
  if (!brief) throw new Error('a miss')
  return brief.tree
}

const sources = keys.map((_, i) => join(work, 'src', `${i}.txt`))
mkdirSync(join(work, 'src'))
for (const path of sources) writeFileSync(path, 'source')
await cold()
{
  using store = openLocalStore({
    root: join(work, 'artifacts'),
    runId: 's',
    host: 'bench',
    onDamage: () => {},
    now: () => Date.now() + 60_000,
  })
  for (const path of sources) store.stats.set(path, statSync(path), digestOf('source'))
}
for (let round = 0; round < 8; round++) noop()
console.log(
  `memory ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MiB, index ${statSync(join(work, 'artifacts', 'index.db')).size / 2 ** 20} MiB`,
)
rmSync(work, { recursive: true, force: true })
