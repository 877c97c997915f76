// Safetensors compared tensor by tensor, by largest absolute difference and by ULP. Pure.
// Format: u64 length of a JSON header (little-endian), the header (name -> dtype, shape, data_offsets), the data.

export interface TensorDifference {
  /** Tensor with the largest difference, or the one that cannot be compared. */
  readonly tensor: string
  readonly maxAbs: number
  /** Units in the last place, of F32 tensors; undefined for others. */
  readonly maxUlp: number | undefined
  readonly what: string
}

interface Tensor {
  readonly dtype: string
  readonly shape: readonly number[]
  readonly data: Buffer
}

/** @returns undefined where all tensors hold the same bits. @throws Error where either is no safetensors file */
export function compareSafetensors(left: Buffer, right: Buffer): TensorDifference | undefined {
  const a = readTensors(left)
  const b = readTensors(right)
  let worst: TensorDifference | undefined
  for (const name of new Set([...a.keys(), ...b.keys()])) {
    const found = compareTensor(name, a.get(name), b.get(name))
    if (found && (!worst || found.maxAbs > worst.maxAbs)) worst = found
  }
  return worst
}

function compareTensor(
  name: string,
  a: Tensor | undefined,
  b: Tensor | undefined,
): TensorDifference | undefined {
  const incomparable = (what: string): TensorDifference => ({
    tensor: name,
    maxAbs: Number.POSITIVE_INFINITY,
    maxUlp: undefined,
    what,
  })
  if (!a || !b) return incomparable(`only in the ${a ? 'first' : 'second'}`)
  if (a.dtype !== b.dtype || a.shape.join() !== b.shape.join()) {
    return incomparable(`${a.dtype} [${a.shape.join()}] and ${b.dtype} [${b.shape.join()}]`)
  }
  if (a.data.equals(b.data)) return undefined
  const read = READERS[a.dtype]
  if (!read) return incomparable(`bytes of ${a.dtype} differ`)
  let maxAbs = 0
  let maxUlp = 0
  for (let at = 0; at < a.data.length; at += read.bytes) {
    const difference = Math.abs(read.value(a.data, at) - read.value(b.data, at))
    // NaN beside anything but the same NaN is as far away as can be.
    if (!(difference <= maxAbs)) maxAbs = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference
    if (a.dtype === 'F32') maxUlp = Math.max(maxUlp, Math.abs(orderOf(a.data, at) - orderOf(b.data, at)))
  }
  const ulp = a.dtype === 'F32' ? maxUlp : undefined
  return { tensor: name, maxAbs, maxUlp: ulp, what: `largest difference ${maxAbs.toExponential(2)}` }
}

const READERS: Readonly<
  Record<string, { readonly bytes: number; readonly value: (data: Buffer, at: number) => number }>
> = {
  F32: { bytes: 4, value: (data, at) => data.readFloatLE(at) },
  F64: { bytes: 8, value: (data, at) => data.readDoubleLE(at) },
  // The upper half of a float32.
  BF16: {
    bytes: 2,
    value: (data, at) => Buffer.from([0, 0, data[at] ?? 0, data[at + 1] ?? 0]).readFloatLE(0),
  },
  I64: { bytes: 8, value: (data, at) => Number(data.readBigInt64LE(at)) },
  I32: { bytes: 4, value: (data, at) => data.readInt32LE(at) },
}

/** Floats in the order of their values, so that neighbours differ by one. */
function orderOf(data: Buffer, at: number): number {
  const bits = data.readInt32LE(at)
  return bits < 0 ? -(bits & 0x7fffffff) : bits
}

function readTensors(file: Buffer): ReadonlyMap<string, Tensor> {
  if (file.length < 8) throw new Error('it is too short for a safetensors file')
  const headerEnd = 8 + Number(file.readBigUInt64LE(0))
  if (headerEnd > file.length) throw new Error('its header is longer than the file')
  const header: unknown = JSON.parse(file.subarray(8, headerEnd).toString('utf8'))
  const tensors = new Map<string, Tensor>()
  for (const [name, value] of Object.entries(header ?? {})) {
    if (name === '__metadata__') continue
    const {
      dtype,
      shape,
      data_offsets: offsets,
    } = value as { dtype: string; shape: number[]; data_offsets: [number, number] }
    tensors.set(name, { dtype, shape, data: file.subarray(headerEnd + offsets[0], headerEnd + offsets[1]) })
  }
  return tensors
}
