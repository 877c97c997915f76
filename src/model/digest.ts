// Digests: the sha256 of bytes, as a branded lowercase hex string. Holds no file access: see capture/ and store/.

import { hash } from 'node:crypto'

/** sha256 of some bytes, 64 lowercase hex digits. Branded so that a name or a path is never taken for one. */
export type Digest = string & { readonly __brand: 'Digest' }

/** How a digest is spelled. */
export const DIGEST = /^[0-9a-f]{64}$/

/** sha256 of a string's UTF-8 bytes or of a buffer. */
export function digestOf(content: string | Uint8Array): Digest {
  // `hash` answers a plain string; the brand is what this function adds.
  return hash('sha256', content, 'hex') as Digest
}

/** The first 12 hex digits: enough for people, never used as a key. */
export function shortDigest(digest: string): string {
  return digest.slice(0, 12)
}
