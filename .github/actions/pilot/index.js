// Runs pilot as a child that has the variables of the cache. Committed as it is and without dependencies: a runner
// executes this file itself.

import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { delimiter, resolve } from 'node:path'

try {
  const folder = resolve(input('working-directory') || '.')
  const token = process.env.ACTIONS_RUNTIME_TOKEN
  // A runner masks it already; one that does not must not print it either.
  if (token) process.stdout.write(`::add-mask::${token}\n`)
  start(input('program') || 'pilot', toWords(input('args')), folder)
} catch (error) {
  fail(error.message)
}

function start(program, words, cwd) {
  const child = spawn(program, words, { cwd, env: environmentFor(cwd), stdio: 'inherit' })
  // A cancelled job gets SIGINT, then SIGTERM: pilot ends its stages and keeps what is done.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
  child.once('error', (error) => fail(`${program} cannot be started in ${cwd}: ${error.message}`))
  child.once('close', (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0)
  })
}

/** Without the inputs of this action; with the project's own programs first. */
function environmentFor(folder) {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('INPUT_'))
  const path = [resolve(folder, 'node_modules/.bin'), process.env.PATH].filter(Boolean).join(delimiter)
  return { ...Object.fromEntries(kept), PATH: path }
}

function input(name) {
  return (process.env[`INPUT_${name.toUpperCase()}`] ?? '').trim()
}

/** Words as a shell takes them apart: blanks between them, quotes around what belongs together, `\` before one sign. */
function toWords(text) {
  const words = []
  const word = /\s*((?:[^\s'"\\]|'[^']*'|"(?:[^"\\]|\\.)*"|\\.)+)/sy
  const end = text.trimEnd().length
  while (word.lastIndex < end) {
    const at = word.lastIndex
    const found = word.exec(text)
    if (!found) throw new Error(`a quote in \`args\` is not closed: ${text.slice(at).trim()}`)
    words.push(found[1].replaceAll(/'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/gs, unquote))
  }
  return words
}

function unquote(_, plain, quoted, sign) {
  return plain ?? quoted?.replaceAll(/\\(["\\])/g, '$1') ?? sign
}

function fail(message) {
  process.stdout.write(`::error::${message.replaceAll('%', '%25').replaceAll('\n', '%0A')}\n`)
  process.exitCode = 3
}
