import { expect, test } from 'vitest'
import { compareSafetensors } from '../../../src/compare/safetensors.ts'

/** A file with these F32 tensors (fixture). */
function fixture(tensors: Readonly<Record<string, readonly number[]>>, extra: object = {}): Buffer {
  const header: Record<string, unknown> = { ...extra }
  const chunks: Buffer[] = []
  let at = 0
  for (const [name, values] of Object.entries(tensors)) {
    const data = Buffer.from(Float32Array.from(values).buffer)
    header[name] = { dtype: 'F32', shape: [values.length], data_offsets: [at, at + data.length] }
    chunks.push(data)
    at += data.length
  }
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  return Buffer.concat([length, text, ...chunks])
}

test('the same tensors are the same, whatever else the header says', () => {
  const left = fixture({ a: [1, 2], b: [3] })

  expect(
    compareSafetensors(left, fixture({ a: [1, 2], b: [3] }, { __metadata__: { made: 'later' } })),
  ).toBeUndefined()
})

test('the tensor that differs most is named, with its distance and its ULP', () => {
  const next = new Float32Array(1)
  new Int32Array(next.buffer)[0] = (new Int32Array(Float32Array.of(2).buffer)[0] ?? 0) + 1

  const found = compareSafetensors(fixture({ a: [1, 2], b: [3] }), fixture({ a: [1, next[0] ?? 0], b: [3] }))

  expect(found).toMatchObject({ tensor: 'a', maxUlp: 1 })
  expect(found?.maxAbs).toBeCloseTo(2 ** -22, 12)
})

test('numbers on both sides of zero are as many ULP apart as there are floats between', () => {
  expect(compareSafetensors(fixture({ a: [-1e-45] }), fixture({ a: [1e-45] }))?.maxUlp).toBe(2)
})

test('NaN, a missing tensor and another shape are infinitely far', () => {
  const base = fixture({ a: [1, 2] })

  for (const other of [fixture({ a: [1, Number.NaN] }), fixture({ b: [1, 2] }), fixture({ a: [1] })])
    expect(compareSafetensors(base, other)?.maxAbs).toBe(Number.POSITIVE_INFINITY)
})

test('what is no safetensors file is said', () => {
  expect(() => compareSafetensors(Buffer.from('short'), Buffer.from('short'))).toThrow('too short')
})
