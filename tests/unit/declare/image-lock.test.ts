import { expect, test } from 'vitest'
import { hasTag, IMAGE_LOCK, pinImage, readImageLock } from '../../../src/declare/image-lock.ts'
import { createScratch } from '../../rig/scratch.ts'

const DIGEST = `sha256:${'0'.repeat(64)}`

test.each([
  ['host/name:v1', true],
  ['host:5000/name:v1', true],
  ['host:5000/name', false],
  ['host/name', false],
  [`host/name@${DIGEST}`, false],
  [`host/name:v1@${DIGEST}`, false],
])('%s has a tag: %s', (image, expected) => {
  expect(hasTag(image)).toBe(expected)
})

test('a locked tag becomes its digest, the port of a registry stays, and what is not locked stays as it is', () => {
  const lock = { 'host:5000/name:v1': DIGEST }

  expect(pinImage('host:5000/name:v1', lock)).toBe(`host:5000/name@${DIGEST}`)
  expect(pinImage('host:5000/name:v2', lock)).toBe('host:5000/name:v2')
  expect(pinImage('constructor', {})).toBe('constructor')
})

test('a lock that is none is refused with its path', () => {
  using scratch = createScratch()
  expect(readImageLock(scratch.root)).toEqual({})
  scratch.write(IMAGE_LOCK, '{"host/name:v1": "latest"}')

  expect(() => readImageLock(scratch.root)).toThrow(/locks\/images\.json is not a list of tags and digests/)
})
