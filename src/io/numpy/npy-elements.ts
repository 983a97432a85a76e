/** Element types of `.npy` and other files: the corresponding dtype, reading and writing. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { fromBf16, fromF16 } from '../../ir/values/half.ts'
import type { ValueArray } from '../../storage/tensor.ts'
import { HOST_IS_LITTLE_ENDIAN } from '../byte-source.ts'
import { encoder } from '../element-arrays.ts'

export interface ElementType {
  /** Type letter and bytes, as in numpy's descriptors: `f8`, `i4`, `b1`, `S3`. */
  readonly code: string
  readonly bytes: number
  readonly littleEndian: boolean
  /** The default dtype; `null` for text. */
  readonly dtype: Dtype | null
}

type Read = (view: DataView, at: number, littleEndian: boolean) => number

interface StoredType {
  readonly dtype: Dtype
  /** The stored bits are those of `dtype`. */
  readonly sameBits: boolean
  readonly read: Read
}

const TWO32 = 4294967296

/** Beyond 2^53 the sum rounds to the nearest double, which exceeds every integer dtype. */
const read64 =
  (signed: boolean): Read =>
  (v, at, le) => {
    const high = le ? at + 4 : at
    return (signed ? v.getInt32(high, le) : v.getUint32(high, le)) * TWO32 + v.getUint32(le ? at : at + 4, le)
  }

const STORED_TYPES: Readonly<Record<string, StoredType>> = {
  f8: { dtype: 'f64', sameBits: true, read: (v, at, le) => v.getFloat64(at, le) },
  f4: { dtype: 'f32', sameBits: true, read: (v, at, le) => v.getFloat32(at, le) },
  f2: { dtype: 'f16', sameBits: true, read: (v, at, le) => fromF16(v.getUint16(at, le)) },
  i8: { dtype: 'i32', sameBits: false, read: read64(true) },
  u8: { dtype: 'u32', sameBits: false, read: read64(false) },
  i4: { dtype: 'i32', sameBits: true, read: (v, at, le) => v.getInt32(at, le) },
  u4: { dtype: 'u32', sameBits: true, read: (v, at, le) => v.getUint32(at, le) },
  i2: { dtype: 'i32', sameBits: false, read: (v, at, le) => v.getInt16(at, le) },
  u2: { dtype: 'i32', sameBits: false, read: (v, at, le) => v.getUint16(at, le) },
  i1: { dtype: 'i8', sameBits: true, read: (v, at) => v.getInt8(at) },
  u1: { dtype: 'u8', sameBits: true, read: (v, at) => v.getUint8(at) },
  // Not `sameBits`: stored bytes other than 0 and 1 must be converted.
  b1: { dtype: 'bool', sameBits: false, read: (v, at) => (v.getUint8(at) ? 1 : 0) },
}

/** Descriptors written to `.npy` files. bf16 has none: it is written as f32, which represents it exactly. */
export const DESCRIPTORS: Readonly<Record<Dtype, string>> = {
  f64: '<f8',
  f32: '<f4',
  f16: '<f2',
  bf16: '<f4',
  i32: '<i4',
  u32: '<u4',
  i8: '|i1',
  u8: '|u1',
  bool: '|b1',
}

const REFUSED: Readonly<Record<string, string>> = {
  c: 'complex numbers: no element type holds them',
  O: 'Python objects (pickled), which only Python can read',
  M: 'dates',
  m: 'time spans',
  V: 'raw or structured records',
  f: 'extended-precision floats',
}

/** The element type of a descriptor such as `<f8`. @throws SptError `io/unsupported` */
export function elementType(descriptor: string, name: string): ElementType {
  const [, order = '', letter = '', digits = ''] = /^([<>|=]?)([A-Za-z?])(\d*)$/.exec(descriptor) ?? []
  const code = letter + digits
  const bytes = letter === 'U' ? 4 * Number(digits) : Number(digits)
  const littleEndian = order !== '>'
  const known = Object.hasOwn(STORED_TYPES, code) ? STORED_TYPES[code] : undefined
  if (known) return { code, bytes, littleEndian, dtype: known.dtype }
  if ((letter === 'S' || letter === 'U') && digits !== '' && bytes <= 1 << 16)
    return { code, bytes, littleEndian, dtype: null }
  const reason = REFUSED[letter]
  return failWith(
    'io/unsupported',
    `${name}: elements of type '${descriptor}'${reason ? ` (${reason})` : ''} are not supported`,
    { expected: Object.keys(STORED_TYPES).join(', ') },
  )
}

/** Types of other files that `.npy` has no descriptor for. */
const BEYOND_NUMPY: Readonly<Record<string, StoredType>> = {
  bf2: { dtype: 'bf16', sameBits: true, read: (v, at, le) => fromBf16(v.getUint16(at, le)) },
}

const READ: Readonly<Record<string, StoredType>> = { ...STORED_TYPES, ...BEYOND_NUMPY }

/** The little-endian element type of a code of `ElementType`, including `bf2`. */
export const elementOf = (code: string): ElementType => ({
  code,
  bytes: Number(code.replace(/\D+/, '')),
  littleEndian: true,
  dtype: READ[code]!.dtype,
})

/** The bytes of `values` in little-endian order; a view of the array on little-endian hosts. */
export function littleEndian(values: ValueArray): Uint8Array {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
  if (HOST_IS_LITTLE_ENDIAN || values.BYTES_PER_ELEMENT === 1) return bytes
  const out = bytes.slice()
  for (let at = 0; at < out.length; at += values.BYTES_PER_ELEMENT)
    out.subarray(at, at + values.BYTES_PER_ELEMENT).reverse()
  return out
}

/** Destination of elements: `values`, an array of `dtype`, from element `from` on. */
interface Target {
  readonly values: ValueArray
  readonly dtype: Dtype
  readonly from: number
  /** The array's name in diagnostics. */
  readonly name: string
}

/** Exact digits of 64-bit integers by array index; the bytes begin with element `from`. */
const digitsOf = ({ code, littleEndian: le }: ElementType, view: DataView, from: number) =>
  code === 'i8'
    ? (at: number): string => `${view.getBigInt64(8 * (at - from), le)}`
    : code === 'u8'
      ? (at: number): string => `${view.getBigUint64(8 * (at - from), le)}`
      : undefined

/** Decodes the whole elements in `bytes` and returns their number. @throws SptError `io/value-range` */
export function readElements(type: ElementType, bytes: Uint8Array, to: Target): number {
  const { values, dtype, from, name } = to
  const { bytes: size, littleEndian: le } = type
  const { read, sameBits } = READ[type.code]!
  const count = Math.floor(bytes.length / size)
  if (sameBits && type.dtype === dtype && (size === 1 || le === HOST_IS_LITTLE_ENDIAN)) {
    new Uint8Array(values.buffer, values.byteOffset, values.byteLength).set(
      bytes.subarray(0, count * size),
      from * size,
    )
    return count
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const encode = encoder(dtype, (at) => `${name}, element ${at}`, digitsOf(type, view, from))
  for (let e = 0; e < count; e++) values[from + e] = encode(read(view, e * size, le), from + e)
  return count
}
