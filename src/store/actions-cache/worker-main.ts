// The process in which @actions/cache runs. The library prints to stdout, looks for its settings in the environment and
// for files in the current folder: here all three are the operation's own, and one operation runs at a time.

import { mkdirSync } from 'node:fs'
import { BUNDLE, type CacheOrder, type CacheReply } from './protocol.ts'

/** So much of what was printed is kept; of tar's complaints about every file the first ones say enough. */
const TEXT_LIMIT = 16_384

let text = ''
for (const stream of [process.stdout, process.stderr]) {
  stream.write = (chunk: unknown): boolean => {
    if (text.length < TEXT_LIMIT) text += String(chunk)
    return true
  }
}

// Whoever gave the orders is gone, however it went.
process.on('disconnect', () => process.exit())
process.on('message', (order: CacheOrder) => {
  // The parent is this same version's workers.ts.
  void perform(order).then((reply) => process.send?.(reply))
})

async function perform({ type, folder, key }: CacheOrder): Promise<CacheReply> {
  text = ''
  try {
    mkdirSync(`${folder}/tmp`, { recursive: true })
    process.chdir(folder)
    process.env['GITHUB_WORKSPACE'] = folder
    process.env['RUNNER_TEMP'] = `${folder}/tmp`
    const cache = await import('@actions/cache')
    if (type === 'save') {
      const id = await cache.saveCache([BUNDLE], key)
      return { key: id === -1 ? null : key, text }
    }
    const found = await cache.restoreCache([BUNDLE], key, [key], { lookupOnly: type === 'lookup' })
    return { key: found ?? null, text }
  } catch (error) {
    return { key: null, text: `${text}\n::error::${error instanceof Error ? error.message : String(error)}` }
  }
}
