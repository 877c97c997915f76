// Four bytes at a time over digits and plain text. The words are read little-endian, so that the first byte is the lowest.

/** Bytes that must follow a row's line feed in its buffer, whatever they hold: words are read across the end. */
export const PADDING = 4

/** The index of the first byte from `at` on that is no digit. */
export function digitsEnd(view: DataView, at: number): number {
  let i = at
  while (true) {
    const nibbles = view.getUint32(i, true) ^ 0x30303030 // a digit becomes 0 to 9
    const others = ((nibbles + 0x76767676) | nibbles) & 0x80808080
    if (others !== 0) return i + ((31 - Math.clz32(others & -others)) >> 3)
    i += 4
  }
}

/** The index of the first byte from `at` on that is a quote, a backslash or a control character, or up to three before it. */
export function plainTextEnd(view: DataView, at: number): number {
  let i = at
  while (true) {
    const four = view.getUint32(i, true)
    const quotes = four ^ 0x22222222
    const slashes = four ^ 0x5c5c5c5c
    const hits =
      ((quotes - 0x01010101) & ~quotes) | ((slashes - 0x01010101) & ~slashes) | ((four - 0x20202020) & ~four)
    if ((hits & 0x80808080) !== 0) return i
    i += 4
  }
}
