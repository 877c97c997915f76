import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openLog } from '../../../src/execute/log.ts'
import { digestOf } from '../../../src/model/digest.ts'

const folder = mkdtempSync(join(tmpdir(), 'pilot-log-'))
afterAll(() => rmSync(folder, { recursive: true }))
let logs = 0

function openTestLog(fields: Partial<Parameters<typeof openLog>[0]> = {}) {
  const path = join(folder, `${++logs}.log`)
  const warnings: string[] = []
  const log = openLog({
    path,
    secrets: [],
    onLine: () => undefined,
    onWarning: (code) => warnings.push(code),
    now: () => 0,
    ...fields,
  })
  return { log, warnings, text: () => readFileSync(path, 'utf8') }
}

test('a secret split over two writes is redacted', () => {
  const { log, text } = openTestLog({ secrets: ['hunter2-correct'] })

  log.write('stdout', Buffer.from('key hunter2-'))
  log.write('stdout', Buffer.from('correct ok\n'))
  log.close()

  expect(text()).toBe('1970-01-01T00:00:00.000Z out| key *** ok\n')
})

test('a character split over two writes is whole', () => {
  const { log, text } = openTestLog()
  const bytes = Buffer.from('grün\n')

  log.write('stdout', bytes.subarray(0, 3))
  log.write('stdout', bytes.subarray(3))
  log.close()

  expect(text()).toContain('out| grün\n')
})

test('of a progress bar the last state of the line is kept', () => {
  const { log, text } = openTestLog()

  log.write('stderr', Buffer.from(' 10%\r 50%\r100%\n'))
  log.close()

  expect(text()).toBe('1970-01-01T00:00:00.000Z err| 100%\n')
})

test('head and tail are kept, the middle is counted, and the digest is of what is kept', () => {
  const { log, text } = openTestLog({ headBytes: 2_000, tailBytes: 2_000 })

  for (let i = 0; i < 10_000; i++) log.write('stdout', Buffer.from(`line ${i}\n`))
  const record = log.close()

  expect(text()).toContain('out| line 0\n')
  expect(text()).toContain('out| line 9999\n')
  expect(text()).not.toContain('out| line 5000\n')
  expect(text().length).toBeLessThan(6_000)
  const kept = text().match(/(out|err)\| /g)?.length ?? 0
  expect(record).toEqual({
    digest: digestOf(readableBytes(text())),
    sizeBytes: Buffer.byteLength(text()),
    droppedLines: 10_000 - kept,
  })
})

test('a clock set back does not turn the order of lines round', () => {
  const times = [2_000, 1_000, 3_000]
  const { log, text } = openTestLog({ now: () => times.shift() ?? 0 })

  for (const word of ['a', 'b', 'c']) log.write('stdout', Buffer.from(`${word}\n`))
  log.close()

  expect(text().match(/:0\d\.000Z out\| \w/g)).toEqual([
    ':02.000Z out| a',
    ':02.000Z out| b',
    ':03.000Z out| c',
  ])
})

test('a log that cannot be written is a warning', () => {
  const { log, warnings } = openTestLog({ path: join(folder, '1.log', 'below-a-file.log') })

  log.write('stdout', Buffer.from('text\n'))
  log.close()

  expect(warnings).toHaveLength(1)
})

function readableBytes(text: string): Buffer {
  return Buffer.from(text)
}
