// A file as blocks of whole rows, read ahead by one block. Memory is two blocks, or the longest row where that is longer.
import { type FileHandle, open } from 'node:fs/promises'
import type { Page } from './quick-row.ts'
import { PADDING } from './skip-word.ts'

const BLOCK_BYTES = 1 << 20
/** Room before each block for the row that the last block cut; longer rows get a buffer of their own. */
const ROOM_BYTES = 1 << 18
const LF = 0x0a

/** Rows `start` to `end`, each ended by a line feed, the last row of the file too. Valid until the next one is asked for. */
export interface Block extends Page {
  readonly start: number
  readonly end: number
}

/** @throws the errors of node:fs */
export async function* readBlocks(path: string): AsyncGenerator<Block> {
  const file = await open(path, 'r')
  try {
    yield* cutBlocks(file)
  } finally {
    await file.close()
  }
}

async function* cutBlocks(file: FileHandle): AsyncGenerator<Block> {
  let [current, other] = [emptyPage(), emptyPage()]
  let coming = readInto(file, current)
  let cut: Buffer[] = [] // the row begun and not ended
  let cutBytes = 0
  while (true) {
    const count = await coming
    if (count === 0) break
    const stop = ROOM_BYTES + count
    coming = readInto(file, other)
    let start = ROOM_BYTES
    const last = current.bytes.lastIndexOf(LF, stop - 1)
    const isCut = last < ROOM_BYTES
    if (!isCut && cutBytes > ROOM_BYTES) {
      start = current.bytes.indexOf(LF, start) + 1
      yield toBlock([...cut, current.bytes.subarray(ROOM_BYTES, start)])
    } else if (!isCut && cutBytes > 0) {
      start -= cutBytes
      Buffer.concat(cut).copy(current.bytes, start)
    }
    if (!isCut) {
      if (start <= last) yield { ...current, start, end: last + 1 }
      cut = []
      cutBytes = 0
    }
    const rest = current.bytes.subarray(isCut ? ROOM_BYTES : last + 1, stop)
    if (rest.length > 0) cut.push(Buffer.from(rest))
    cutBytes += rest.length
    ;[current, other] = [other, current]
  }
  if (cutBytes > 0) yield toBlock([...cut, Buffer.from([LF])])
}

/** Reads the next bytes of the file; a failure is met where it is awaited, and not before. */
function readInto(file: FileHandle, page: Page): Promise<number> {
  const reading = file.read(page.bytes, ROOM_BYTES, BLOCK_BYTES, null).then((result) => result.bytesRead)
  reading.catch(() => undefined)
  return reading
}

function emptyPage(): Page {
  return toPage(Buffer.alloc(ROOM_BYTES + BLOCK_BYTES + PADDING))
}

/** One block out of the pieces of its rows. */
export function toBlock(pieces: readonly Buffer[]): Block {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  const bytes = Buffer.concat(pieces, length + PADDING)
  return { ...toPage(bytes), start: 0, end: length }
}

function toPage(bytes: Buffer): Page {
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length) }
}
