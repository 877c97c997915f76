// Redaction: takes secrets out of text before it is written or passed on. Pure.
// Finds a secret as it is, percent-encoded, JSON- or shell-escaped, in hex and in base64 (any alignment, standard or
// URL-safe, also wrapped over lines). What it cannot find: a secret encrypted, compressed or spelt one letter a line.

/** Shorter secrets are refused: redacting them would eat half of every line. */
export const MIN_SECRET_CHARS = 4

const MASK = '***'
/** Pieces of an encoded secret this long are redacted too: `base64` and `xxd -p` wrap their output. */
const GRAM = 16
const ENCODED_RUN = new RegExp(`[A-Za-z0-9+/_-]{${GRAM},}`, 'g')

export interface Redactor {
  /** True when there is nothing to look for. */
  readonly isIdle: boolean
  /** How many secrets were too short to be looked for. */
  readonly refused: number
  /** No match is longer, in UTF-16 units: hold back that much where a text is cut. */
  readonly longestMatch: number
  redact(text: string): string
}

const IDLE: Redactor = { isIdle: true, refused: 0, longestMatch: 0, redact: (text) => text }

/** Takes the secrets out of `text`. For many texts make one redactor. */
export function redactText(text: string, secrets: readonly string[]): string {
  return makeRedactor(secrets).redact(text)
}

/** A redactor for these secrets. A secret of several lines is looked for whole and line by line. */
export function makeRedactor(secrets: readonly string[]): Redactor {
  const wanted = secrets.filter((secret) => secret.length > 0)
  if (wanted.length === 0) return IDLE
  const long = wanted.filter((secret) => secret.length >= MIN_SECRET_CHARS)
  const refused = wanted.length - long.length
  const texts = [...new Set(long.flatMap(withItsLines))].sort((a, b) => b.length - a.length)
  if (texts.length === 0) return { ...IDLE, refused }
  const grams = new Set(texts.flatMap(toGrams))
  // The longest spelling of a character is its UTF-8 bytes percent-encoded or one \uXXXX a unit: 9 a unit at most.
  const longestMatch = Math.max(...texts.map((text) => text.length)) * 9 + GRAM
  const pattern = new RegExp(
    texts.flatMap((text) => [...toBase64(text), toHex(text), toSpelt(text)]).join('|'),
    'g',
  )
  return {
    isIdle: false,
    refused,
    longestMatch,
    redact: (text) => redactPieces(text.replace(pattern, MASK), grams),
  }
}

function withItsLines(secret: string): string[] {
  const lines = secret.split(/\r?\n/).map((line) => line.trim())
  return [secret, secret.trim(), ...lines].filter((text) => text.length >= MIN_SECRET_CHARS)
}

/** Pattern of the text, each character as it is or escaped as URLs, JSON and shells do. */
function toSpelt(text: string): string {
  return Array.from(text, spellings).join('')
}

function spellings(char: string): string {
  const percent = Array.from(Buffer.from(char), (byte) => `%${anyCase(hex(byte, 2))}`).join('')
  let units = ''
  for (let at = 0; at < char.length; at++) units += `\\\\u${anyCase(hex(char.charCodeAt(at), 4))}`
  const ways = [escapePattern(char), percent, units]
  const short = JSON.stringify(char).slice(1, -1)
  if (short.length === 2) ways.push(escapePattern(short))
  if (char === ' ') ways.push('\\+')
  if (/[^A-Za-z0-9\s]/.test(char)) ways.push(`\\\\${escapePattern(char)}`)
  return `(?:${ways.join('|')})`
}

function toHex(text: string): string {
  return anyCase(Buffer.from(text).toString('hex'))
}

/** Patterns of the base64 digits the text alone decides, at each of the three alignments, with the neighbours
 *  that hold some bits of it. */
function toBase64(text: string): string[] {
  const digit = '[A-Za-z0-9+/_-]'
  return base64Cores(text).map((core) => `${digit}?${Array.from(core, base64Spellings).join('')}${digit}?=*`)
}

function base64Cores(text: string): string[] {
  const bytes = Buffer.from(text)
  return [0, 1, 2].map((shift) => {
    const digits = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    return digits.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6))
  })
}

function base64Spellings(digit: string): string {
  if (digit === '+') return '(?:[+-]|%2[Bb])'
  if (digit === '/') return '(?:[/_]|%2[Ff]|\\\\/)'
  return digit
}

/** Every run of `GRAM` digits within the encodings of a long text. */
function toGrams(text: string): string[] {
  const grams: string[] = []
  for (const code of [...base64Cores(text), Buffer.from(text).toString('hex')]) {
    for (let at = 0; at + GRAM <= code.length; at++) grams.push(code.slice(at, at + GRAM))
  }
  return grams
}

function redactPieces(text: string, grams: ReadonlySet<string>): string {
  if (grams.size === 0) return text
  return text.replace(ENCODED_RUN, (run) => {
    const digits = run.replaceAll('-', '+').replaceAll('_', '/')
    const lower = digits.toLowerCase()
    for (let at = 0; at + GRAM <= digits.length; at++) {
      if (grams.has(digits.slice(at, at + GRAM)) || grams.has(lower.slice(at, at + GRAM))) return MASK
    }
    return run
  })
}

function anyCase(digits: string): string {
  return digits.replace(/[a-f]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)
}

function hex(value: number, width: number): string {
  return value.toString(16).padStart(width, '0')
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}
