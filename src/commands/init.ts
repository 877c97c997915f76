// pilot init: a small pipeline that runs, to be replaced by the user's own. Never overwrites a file.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PilotError } from '../model/error.ts'
import { print } from './session.ts'

const FILES: Readonly<Record<string, string>> = {
  'pipeline.ts': `import { definePipeline, defineStage, file, sourceFile } from 'hessian-pilot'

// A stage: what it reads, what it writes, and the program that turns one into the other.
const count = defineStage({
  name: 'count',
  folder: 'stages/count',
  inputs: { text: file() },
  outputs: { counts: file('counts.json') },
  run: ({ inputs, outputs, src, node }) => [node, \`\${src}/count.mjs\`, inputs.text, outputs.counts],
})

const report = defineStage({
  name: 'report',
  folder: 'stages/report',
  inputs: { counts: file() },
  outputs: { report: file('report.md') },
  run: ({ inputs, outputs, src, node }) => [node, \`\${src}/report.mjs\`, inputs.counts, outputs.report],
})

export default definePipeline({
  stages: () => {
    const counted = count({ inputs: { text: sourceFile('data/text.txt') } })
    return [counted, report({ inputs: { counts: counted.outputs.counts } })]
  },
})
`,
  'stages/count/count.mjs': `// Counts the words of a text.
import { readFileSync, writeFileSync } from 'node:fs'

const [, , text, counts] = process.argv
const words = readFileSync(text, 'utf8').toLowerCase().match(/[\\p{L}]+/gu) ?? []
const byWord = {}
for (const word of words.sort()) byWord[word] = (byWord[word] ?? 0) + 1
writeFileSync(counts, JSON.stringify(byWord, null, 2))
console.log(\`\${words.length} words\`)
`,
  'stages/report/report.mjs': `// Writes the most frequent words as a table.
import { readFileSync, writeFileSync } from 'node:fs'

const [, , counts, report] = process.argv
const rows = Object.entries(JSON.parse(readFileSync(counts, 'utf8'))).sort((a, b) => b[1] - a[1])
const table = rows.slice(0, 10).map(([word, times]) => \`| \${word} | \${times} |\`)
writeFileSync(report, ['| word | times |', '|---|--:|', ...table, ''].join('\\n'))
`,
  'data/text.txt': 'Make for experiments that must be believed: believed because they can be made again.\n',
}

export async function initCommand(folder = process.cwd()): Promise<number> {
  const taken = Object.keys(FILES).filter((path) => existsSync(join(folder, path)))
  if (taken.length > 0) {
    throw new PilotError({
      code: 'already-there',
      blame: 'user',
      what: `${taken.join(', ')} ${taken.length === 1 ? 'exists' : 'exist'} already, and nothing is overwritten`,
      where: folder,
      hint: 'start in an empty folder, or write pipeline.ts yourself: see the README',
    })
  }
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text, { flag: 'wx' })
    print(`wrote ${path}`)
  }
  ignoreArtifacts(folder)
  print('now: pilot run')
  return 0
}

/** The store is not for version control. */
function ignoreArtifacts(folder: string): void {
  const path = join(folder, '.gitignore')
  const before = existsSync(path) ? readFileSync(path, 'utf8') : ''
  if (before.split('\n').some((line) => /^\/?artifacts\/?$/.test(line.trim()))) return
  writeFileSync(path, `${before}${before === '' || before.endsWith('\n') ? '' : '\n'}artifacts/\n`)
  print('added artifacts/ to .gitignore')
}
