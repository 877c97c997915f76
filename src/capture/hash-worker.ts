// Body of a hashing thread: a path in, its sha256 out. The next piece is read while this one is hashed, so a large file
// costs one pass of sha256 and the reading is free.

import { createHash } from 'node:crypto'
import { close, open, read } from 'node:fs'
import { promisify } from 'node:util'
import { parentPort } from 'node:worker_threads'

export interface HashRequest {
  readonly path: string
}

export type HashReply = { readonly digest: string; readonly sizeBytes: number } | { readonly error: Error }

/** Small enough to stay in the core's cache between being read and being hashed. */
const PIECE = 1 << 20

const readPiece = promisify(read)

async function hashFile(path: string): Promise<{ digest: string; sizeBytes: number }> {
  const file = await promisify(open)(path, 'r')
  try {
    const sum = createHash('sha256')
    let [buffer, other] = [Buffer.allocUnsafeSlow(PIECE), Buffer.allocUnsafeSlow(PIECE)]
    let sizeBytes = 0
    let piece = await readPiece(file, buffer, 0, PIECE, 0)
    while (piece.bytesRead > 0) {
      sizeBytes += piece.bytesRead
      const next = readPiece(file, other, 0, PIECE, sizeBytes)
      sum.update(buffer.subarray(0, piece.bytesRead))
      piece = await next
      ;[buffer, other] = [other, buffer]
    }
    return { digest: sum.digest('hex'), sizeBytes }
  } finally {
    await promisify(close)(file)
  }
}

parentPort?.on('message', async ({ path }: HashRequest) => {
  let reply: HashReply
  try {
    reply = await hashFile(path)
  } catch (error) {
    // What node's fs throws is an Error.
    reply = { error: error as Error }
  }
  parentPort?.postMessage(reply)
})
