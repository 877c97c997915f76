// Every byte-exact case by rule, line and path: through the checker, the reader, the command and, where a row parses, the record.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { trajectoryCommand } from '../../trajectory/command.ts'
import {
  checkTrajectories,
  readTrajectories,
  TrajectoryError,
  validateTrajectory,
} from '../../trajectory/index.ts'
import { readJson } from '../../trajectory/json-reader.ts'
import { casePath, EXPECTED, type Expected } from './cases.ts'
import { allFaults, formatShort } from './faults.ts'

/** Rules that a record that is already parsed cannot break: they are of the text or of the whole file. */
const OF_TEXT = /^(?:file|json|episode_id|group)\./

describe.each(Object.entries(EXPECTED))('%s', (name, expected) => {
  const path = casePath(name)

  test('the first fault is the one expected', async () => {
    const faults = await Array.fromAsync(checkTrajectories(path))

    expect(faults.map(toVerdict)).toEqual(expected.valid ? [] : [toVerdict(expected)])
    for (const fault of faults) expect(fault.hint).not.toBe('')
  })

  test('the list of all faults holds the one expected', async () => {
    const faults = (await allFaults(path)).map(formatShort)

    if (expected.valid) expect(faults).toEqual([])
    else expect(faults).toContain(formatShort(expected))
  })

  test('the reader gives every episode or throws the fault', async () => {
    const reading = Array.fromAsync(readTrajectories(path))

    if (expected.valid) expect((await reading).length).toBe(rowsOf(path).length)
    else expect(toVerdict(await reading.catch((error) => error))).toEqual(toVerdict(expected))
  })

  test('the record alone is judged the same', () => {
    if (!expected.valid && (OF_TEXT.test(expected.rule) || expected.path === null)) return
    const rows = rowsOf(path)
    const row = rows[expected.valid ? 0 : expected.line - 1] ?? Buffer.alloc(0)
    // A plain JSON.parse keeps what these rules need, but for the difference of 1.0 and 1, and of big integers.
    const records = []
    if (expected.valid || !/^(?:type\.integer|mask\.value)$/.test(expected.rule))
      records.push(JSON.parse(row.toString()))
    // The strict reader reports lone surrogates itself.
    if (expected.valid || expected.rule !== 'string.lone_surrogate') records.push(strictly(row))

    for (const record of records) {
      const verdict = toVerdict(thrownBy(() => validateTrajectory(record)))
      const ofRecord = expected.valid ? {} : { rule: expected.rule, line: 0, path: expected.path }
      expect(verdict).toEqual(toVerdict(ofRecord))
    }
  })

  test('the command says so in one line and by its exit code', async () => {
    let out = ''
    const io = {
      stdout: (text: string) => {
        out += text
      },
      stderr: () => expect.fail('nothing belongs on stderr'),
    }

    const code = await trajectoryCommand(['validate', '--json', path], io)

    const line = JSON.parse(out)
    expect(code).toBe(expected.valid ? 0 : 1)
    expect(Object.keys(line)).toEqual(['file', 'valid', 'episodes', 'faults'])
    expect([line.file, line.valid]).toEqual([path, expected.valid])
    expect(line.faults.map(toVerdict)).toEqual(expected.valid ? [] : [toVerdict(expected)])
  })
})

function toVerdict(fault: Partial<Exclude<Expected, { valid: true }>> | TrajectoryError | undefined) {
  return { rule: fault?.rule, line: fault?.line, path: fault?.path }
}

function rowsOf(path: string): Buffer[] {
  const bytes = readFileSync(path)
  const text = bytes.toString('latin1')
  return (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n').map((row) => Buffer.from(row, 'latin1'))
}

function strictly(row: Buffer): unknown {
  return readJson(row, 0, row.length).value
}

function thrownBy(act: () => unknown): TrajectoryError | undefined {
  try {
    act()
  } catch (error) {
    if (error instanceof TrajectoryError) return error
    throw error
  }
  return undefined
}
