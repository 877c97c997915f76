// A job as a workflow runs it: `send` keeps a folder and a result in the Actions cache, `fetch` brings them back.
// Prints one line of its own; what else comes on stdout is a fault.

import { mkdirSync } from 'node:fs'
import { hashTree } from '../../src/capture/tree.ts'
import type { Digest } from '../../src/model/digest.ts'
import { formatError } from '../../src/model/error.ts'
import { openActionsCacheStore } from '../../src/store/actions-cache/store.ts'
import { sampleResult } from './sample-result.ts'

const [verb, folder = '', temp = ''] = process.argv.slice(2)
try {
  mkdirSync(temp, { recursive: true })
  const store = openActionsCacheStore({
    tempRoot: temp,
    environment: process.env,
    onWarning: (message) => process.stderr.write(`warning: ${message}\n`),
  })
  if (verb === 'send') {
    const tree = await hashTree(folder)
    await store.sendTree(tree, folder)
    await store.putResult(sampleResult({ tree }), { replace: false })
    process.stdout.write(`sent ${tree.digest}\n`)
  } else {
    // Of the sample's action: the first file of what is sent is `out`.
    const key = sampleResult({ tree: { digest: '' as Digest, entries: [] } }).actionDigest
    const result = await store.getResult(key)
    const tree = result && (await store.fetchTree(result.tree, folder))
    process.stdout.write(tree ? `fetched ${tree.digest}\n` : 'missed\n')
  }
} catch (error) {
  process.stderr.write(`${formatError(error)}\n`)
  process.exitCode = 3
}
