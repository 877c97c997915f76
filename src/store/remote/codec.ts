// Bytes as they rest: a first byte says how. Compressing what does not shrink costs time on both sides.

import { promisify } from 'node:util'
import { constants, zstdCompress, zstdCompressSync, zstdDecompress } from 'node:zlib'

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)

const RAW = 0
const ZSTD = 1
const OPTIONS = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }
/** So much of the middle is tried first. */
const SAMPLE_BYTES = 1 << 16
/** Worth it from here on. */
const RATIO = 0.9

/** @param bytes after one byte left free for the mark, so that nothing is copied */
export async function encode(bytes: Buffer): Promise<Buffer> {
  const content = bytes.subarray(1)
  if (shrinks(content)) {
    const packed = await compress(content, OPTIONS)
    return Buffer.concat([Buffer.of(ZSTD), packed])
  }
  bytes[0] = RAW
  return bytes
}

function shrinks(bytes: Buffer): boolean {
  const middle = Math.max(0, (bytes.length - SAMPLE_BYTES) >> 1)
  const sample = bytes.subarray(middle, middle + SAMPLE_BYTES)
  return zstdCompressSync(sample, OPTIONS).length < sample.length * RATIO
}

/** Undefined where the bytes are not what `encode` made of `sizeBytes` bytes. */
export async function decode(bytes: Buffer, sizeBytes: number): Promise<Buffer | undefined> {
  if (bytes[0] === RAW) return bytes.length - 1 === sizeBytes ? bytes.subarray(1) : undefined
  if (bytes[0] !== ZSTD) return undefined
  try {
    const content = await decompress(bytes.subarray(1), { maxOutputLength: Math.max(1, sizeBytes) })
    return content.length === sizeBytes ? content : undefined
  } catch {
    return undefined
  }
}
