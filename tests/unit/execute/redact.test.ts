import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { redactText } from '../../../src/execute/redact.ts'

const SECRET = 'pa55 w"rd/ü+x'

describe('a secret is found', () => {
  test.each([
    ['as it is', SECRET],
    ['in JSON', JSON.stringify(SECRET).slice(1, -1)],
    ['in a URL', encodeURIComponent(SECRET)],
    ['in hex', Buffer.from(SECRET).toString('hex')],
    ['in upper-case hex', Buffer.from(SECRET).toString('hex').toUpperCase()],
    ['in base64', Buffer.from(SECRET).toString('base64')],
    ['in URL-safe base64', Buffer.from(SECRET).toString('base64url')],
    ['in base64 at another alignment', Buffer.from(`x${SECRET}`).toString('base64')],
    ['in base64 at a third alignment', Buffer.from(`xy${SECRET}z`).toString('base64')],
  ])('%s', (_, spelt) => {
    const redacted = redactText(`before ${spelt} after`, [SECRET])

    expect(redacted).toMatch(/^before \S*\*\*\*\S* after$/)
  })
})

test('other text is left alone', () => {
  expect(redactText('nothing to see: pa55', [SECRET])).toBe('nothing to see: pa55')
})

test('of two secrets, one within the other, the longer goes whole', () => {
  expect(redactText('token-abcdef', ['token', 'token-abcdef'])).toBe('***')
})

test('the lines of a secret of several lines are found one by one', () => {
  expect(redactText('-----\nkeymaterial1\nkeymaterial2\n', ['keymaterial1\nkeymaterial2'])).toBe(
    '-----\n***\n',
  )
  expect(redactText('only keymaterial2 here', ['keymaterial1\nkeymaterial2'])).toBe('only *** here')
})

test('whatever surrounds it, the secret is in no redacted text', () => {
  fc.assert(
    fc.property(fc.string(), fc.string({ minLength: 6 }), fc.string(), (before, secret, after) => {
      fc.pre(!'***'.includes(secret.trim()) && secret.trim().length >= 6 && !/^\**$/.test(secret))
      expect(redactText(before + secret + after, [secret])).not.toContain(secret)
    }),
  )
})
