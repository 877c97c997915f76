// What counts as a nonempty identifier: something is left after Python's `str.strip()`.
// JavaScript's `trim` differs: it strips U+FEFF and keeps U+001C to U+001F and U+0085.

/** A character that Python's `str.isspace` calls no space; the class lists all those that it does. */
export const NOT_BLANK = /[^\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/

/** @returns whether nothing is left of `text` after Python's `str.strip()`. */
export function isBlank(text: string): boolean {
  return !NOT_BLANK.test(text)
}

/** `text.strip()` as Python has it. */
export function strip(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isBlank(text.charAt(start))) start++
  while (end > start && isBlank(text.charAt(end - 1))) end--
  return text.slice(start, end)
}
