// Steps over the number lists of a call, where the time of validating goes: hence four bytes at a time. As in skip-token.ts, each
// returns the index after the list or NO, and the line feed after the row (and PADDING more bytes) stands in for a check of the end.

import { NO, skipNumber, skipSpace } from './skip-token.ts'
import { digitsEnd } from './skip-word.ts'

/** What the last list held. */
export interface ListFacts {
  /** Items. */
  length: number
  /** Items that are 1; counted in masks only. */
  ones: number
}

/** Steps over a list. `view` shows the same bytes as `bytes`. */
export type SkipList = (bytes: Buffer, view: DataView, at: number, facts: ListFacts) => number

/** `[0,17,512]`: nonnegative integers of at most 15 digits, exact as doubles. */
export const skipIntegers: SkipList = (bytes, view, at, facts) => {
  facts.length = 0
  let i = openList(bytes, at)
  if (i < 0 || bytes[i] === 0x5d) return i < 0 ? NO : i + 1
  let length = 0
  while (true) {
    const first = i
    i = digitsEnd(view, first)
    const digits = i - first
    if (digits === 0 || digits > 15 || (digits > 1 && bytes[first] === 0x30)) return NO
    length++
    i = nextItem(bytes, i)
    if (i < 0) break
  }
  facts.length = length
  return i === NO ? NO : -i
}

/** `[0,1,1]`: integers 0 and 1. */
export const skipMask: SkipList = (bytes, view, at, facts) => {
  facts.length = 0
  facts.ones = 0
  let i = openList(bytes, at)
  if (i < 0 || bytes[i] === 0x5d) return i < 0 ? NO : i + 1
  let length = 0
  let ones = 0
  while (true) {
    let four = view.getUint32(i, true) // "0,1," and its like, two items at once
    while ((four & 0xfffefffe) === 0x2c302c30) {
      ones += (four & 1) + ((four >>> 16) & 1)
      length += 2
      i += 4
      four = view.getUint32(i, true)
    }
    const bit = (bytes[i] as number) - 0x30
    if (bit !== 0 && bit !== 1) return NO
    ones += bit
    length++
    i = nextItem(bytes, i + 1)
    if (i < 0) break
  }
  facts.length = length
  facts.ones = ones
  return i === NO ? NO : -i
}

/** `[-0.25,0.0]`: finite numbers, none above 0. */
export const skipLogprobs: SkipList = (bytes, view, at, facts) => {
  facts.length = 0
  let i = openList(bytes, at)
  if (i < 0 || bytes[i] === 0x5d) return i < 0 ? NO : i + 1
  let length = 0
  while (true) {
    i = skipLogprob(bytes, view, i)
    if (i < 0) return NO
    length++
    i = nextItem(bytes, i)
    if (i < 0) break
  }
  facts.length = length
  return i === NO ? NO : -i
}

/** The usual form - a minus sign, one digit, a fraction - here; what differs goes through skipNumber. */
function skipLogprob(bytes: Buffer, view: DataView, at: number): number {
  if (bytes[at] !== 0x2d) {
    const end = skipNumber(bytes, at)
    return end > 0 && Number(bytes.toString('latin1', at, end)) > 0 ? NO : end
  }
  const whole = bytes[at + 1] as number
  if (whole < 0x30 || whole > 0x39 || bytes[at + 2] !== 0x2e) return skipNumber(bytes, at)
  const end = digitsEnd(view, at + 3)
  if (end === at + 3) return NO
  return ((bytes[end] as number) | 0x20) === 0x65 ? skipNumber(bytes, at) : end
}

/** After an item: the index of the next, minus the index after the list where it ends, or NO. */
function nextItem(bytes: Uint8Array, at: number): number {
  let i = at
  let byte = bytes[i] as number
  if (byte <= 0x20) {
    i = skipSpace(bytes, i)
    byte = bytes[i] as number
  }
  if (byte !== 0x2c) return byte === 0x5d ? -(i + 1) : NO
  return (bytes[++i] as number) <= 0x20 ? skipSpace(bytes, i) : i
}

/** The index of the first item or of the closing bracket. */
function openList(bytes: Uint8Array, at: number): number {
  return bytes[at] === 0x5b ? skipSpace(bytes, at + 1) : NO
}
