// Random changes to valid files never crash, hang or pass wrongly: the verdict is the oracle's, for bytes and for tokens changed.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toBlock } from '../../trajectory/blocks.ts'
import { createFileChecker } from '../../trajectory/check-file.ts'
import { MINIMAL } from './cases.ts'
import { whyInvalid } from './oracle.ts'

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 3000)

/** Two episodes of one group and one of another, with log probabilities, escapes and text beyond ASCII. */
const VALID = [
  MINIMAL,
  MINIMAL.replace('ep-1', 'ep-2').replace(
    '"finish_reason"',
    '"behavior_logprobs":[-0.5,-1e-7],"finish_reason"',
  ),
  MINIMAL.replace('ep-1', 'Folge 3 \u00e4')
    .replace('g-1', 'g-\\u0032')
    .replace('6*7?', '\\ud83d\\ude00 \u20ac\\n\\"'),
].join('\n')

const NASTY_BYTES = [
  ...Buffer.from('{}[]",:\\0123456789.-+eE \t\r\n/\0tfnu\x1f'),
  0x7f,
  0x80,
  0xa0,
  0xc0,
  0xc2,
  0xed,
  0xef,
  0xbb,
  0xbf,
  0xf4,
  0xff,
]
const NASTY_TOKENS = [
  ...[
    'null',
    'true',
    '[]',
    '{}',
    '""',
    '" "',
    '"\\u001f"',
    '"\\ufeff"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\ud83d\\ude00"',
    '"\u2028"',
  ],
  ...[
    '0',
    '-0',
    '1',
    '-1',
    '2',
    '1.0',
    '1e0',
    '-0.0',
    '01',
    '+1',
    '.5',
    '1.',
    '1e',
    '9007199254740993',
    '123456789012345678',
  ],
  ...[
    '1e999',
    '-1e999',
    '1e-999',
    '5e-324',
    'NaN',
    'Infinity',
    '-Infinity',
    '0x1',
    '[[1]]',
    '[1,2,]',
    '{"a":1,"a":2}',
    '"\\x"',
  ],
  ...[
    '"main"',
    '"HEAD"',
    '" Latest "',
    '"refs/heads/x"',
    '"ep-1"',
    '"g-1"',
    '"t-2"',
    '"c0"',
    '"stop"',
    '"tool"',
    '"captured"',
  ],
  ...[
    '"seed"',
    '"se\\u0065d"',
    '"__proto__"',
    '"calls"',
    '"behavior_logprobs"',
    '"role"',
    `${'['.repeat(1000)}`,
    '-',
    '',
  ],
]

type Change = (text: Buffer) => Buffer

function splice(text: Buffer, at: number, remove: number, put: Uint8Array): Buffer {
  return Buffer.concat([text.subarray(0, at), put, text.subarray(at + remove)])
}

// Without bias: fast-check likes small numbers, and then only the first bytes would change.
const place = fc.noBias(fc.nat({ max: 2 ** 30 - 1 })).map((n) => n / 2 ** 30)
const nastyByte = fc.oneof(fc.constantFrom(...NASTY_BYTES), fc.integer({ min: 0, max: 255 }))

const changeBytes: fc.Arbitrary<Change> = fc
  .tuple(place, fc.nat({ max: 2 }), fc.array(nastyByte, { maxLength: 3 }))
  .map(
    ([at, remove, put]) =>
      (text) =>
        splice(text, Math.floor(at * text.length), remove, Uint8Array.from(put)),
  )

const copyBytes: fc.Arbitrary<Change> = fc
  .tuple(place, place, fc.nat({ max: 60 }))
  .map(([from, to, length]) => (text) => {
    const start = Math.floor(from * text.length)
    return splice(text, Math.floor(to * text.length), 0, Buffer.from(text.subarray(start, start + length)))
  })

const cutBytes: fc.Arbitrary<Change> = fc.tuple(place, fc.nat({ max: 80 })).map(
  ([at, length]) =>
    (text) =>
      splice(text, Math.floor(at * text.length), length, new Uint8Array()),
)

/** Replaces, doubles or drops a whole token, or doubles a run of them (a field, say). */
const changeTokens: fc.Arbitrary<Change> = fc
  .tuple(
    place,
    fc.constantFrom(...NASTY_TOKENS),
    fc.constantFrom('replace', 'insert', 'drop', 'double', 'space'),
    fc.nat({ max: 8 }),
  )
  .map(([at, token, how, run]) => (text) => {
    const tokens = text.toString('latin1').match(/"(?:[^"\\\n]|\\.)*"|[-+.\w]+|[\s\S]/g) ?? []
    const index = Math.floor(at * tokens.length)
    const put = Buffer.from(token).toString('latin1')
    if (how === 'replace') tokens.splice(index, 1, put)
    else if (how === 'insert') tokens.splice(index, 0, put)
    else if (how === 'drop') tokens.splice(index, 1)
    else if (how === 'space') tokens.splice(index, 0, ' \t')
    else tokens.splice(index, 0, ...tokens.slice(index, index + run))
    return Buffer.from(tokens.join(''), 'latin1')
  })

/** Puts another value where a string or number stands: the text stays JSON, mostly. */
const changeValue: fc.Arbitrary<Change> = fc
  .tuple(place, fc.constantFrom(...NASTY_TOKENS))
  .map(([at, token]) => (text) => {
    const tokens = text.toString('latin1').matchAll(/"(?:[^"\\\n]|\\.)*":?|(?<=[[:,])-?[0-9][-+.\w]*/g)
    const values = [...tokens].filter(([token]) => !token.endsWith(':'))
    const found = values[Math.floor(at * values.length)]
    return found === undefined ? text : splice(text, found.index, found[0].length, Buffer.from(token))
  })

/** Copies a field, with its comma, to before another one: twice in one object, unknown in another. */
const copyField: fc.Arbitrary<Change> = fc.tuple(place, place).map(([from, to]) => (text) => {
  const found = [...text.toString('latin1').matchAll(/"\w+":(?:"[^"\n]*"|[-\d.]+|\[[\d,]*\]),/g)]
  const [field, before] = [found[Math.floor(from * found.length)], found[Math.floor(to * found.length)]]
  if (field === undefined || before === undefined) return text
  return splice(text, before.index, 0, Buffer.from(field[0], 'latin1'))
})

const changes = fc.array(
  fc.oneof(
    changeBytes,
    copyBytes,
    cutBytes,
    { arbitrary: changeTokens, weight: 2 },
    { arbitrary: changeValue, weight: 8 },
    { arbitrary: copyField, weight: 2 },
  ),
  { minLength: 1, maxLength: 2 },
)

test('the unchanged file is valid to both', () => {
  expect(whyInvalid(Buffer.from(VALID))).toBeUndefined()
  expect(check(Buffer.from(VALID))).toEqual([])
})

test('a changed file is valid exactly if the oracle says so', () => {
  fc.assert(
    fc.property(changes, (list) => {
      const bytes = list.reduce<Buffer>((text, change) => change(text), Buffer.from(VALID))
      const reason = whyInvalid(bytes)
      const faults = check(bytes)
      if ((reason === undefined) !== (faults.length === 0)) {
        throw new Error(
          `oracle: ${reason ?? 'valid'}; found: ${JSON.stringify(faults)}; file: ${bytes.toString()}`,
        )
      }
    }),
    { numRuns: RUNS, endOnFailure: true },
  )
})

test('random bytes are judged without a crash', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      expect(check(Buffer.from(bytes)).length === 0).toBe(whyInvalid(bytes) === undefined)
    }),
    { numRuns: RUNS / 3 },
  )
})

/** All faults of a file given as bytes. */
function check(bytes: Buffer): readonly unknown[] {
  const checker = createFileChecker()
  const isEnded = bytes.length === 0 || bytes.at(-1) === 0x0a
  const faults = checker.check(toBlock(isEnded ? [bytes] : [bytes, Buffer.from('\n')]), true)
  return [...faults, ...checker.finish()]
}
