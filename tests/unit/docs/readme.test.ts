// The README says what is so: exit codes, commands, stages.

import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { EXIT_CODES } from '../../../src/model/error.ts'

const at = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url))
const readme = readFileSync(at('README.md'), 'utf8')

test('the table of exit codes is the program’s', () => {
  const codes = [...readme.matchAll(/^\| (\d+) \| /gm)].map((match) => Number(match[1]))

  expect(codes).toEqual(Object.values(EXIT_CODES))
})

test('every command is in the table', () => {
  const declared = [...readFileSync(at('src/cli.ts'), 'utf8').matchAll(/\.command\('(\w+)'\)/g)].map(
    (match) => match[1],
  )
  const told = [...readme.matchAll(/^\| `(\w+)[^|]*` \| /gm)].map((match) => match[1])

  expect(declared.filter((command) => !told.includes(command))).toEqual([])
})

test('every stage of the pipeline is in the table', () => {
  const named = [...readFileSync(at('pipeline.ts'), 'utf8').matchAll(/name: '([\w-]+)',/g)].map(
    (match) => match[1],
  )
  const folders = readdirSync(at('stages')).flatMap((folder) =>
    readdirSync(at(`stages/${folder}`)).includes('stage.ts') ? [folder] : [],
  )

  for (const name of [...folders, ...named].filter((each) => each !== 'calculator'))
    expect(readme).toMatch(new RegExp(`\`${name}\``))
})

test('every link within the project leads somewhere', () => {
  const links = [...readme.matchAll(/\]\(((?!http)[^)]+)\)/g)].map((match) => match[1] ?? '')

  expect(links.length).toBeGreaterThan(0)
  for (const link of links) expect(() => readdirSync(at('.')) && readFileOrFolder(at(link))).not.toThrow()
})

function readFileOrFolder(path: string): unknown {
  try {
    return readdirSync(path)
  } catch {
    return readFileSync(path)
  }
}
