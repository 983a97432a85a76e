/**
 * Streaming reader for `.npy` (NEP 1, versions 1, 2 and 3): bytes are decoded directly into an array of the requested
 * type.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { DenseTensor, ValueArray } from '../../storage/tensor.ts'
import { type Chunks, concat, WHOLE } from '../byte-source.ts'
import { valueArray } from '../element-arrays.ts'
import { type ElementType, elementType, readElements } from './npy-elements.ts'

interface NpyHeader {
  readonly descriptor: string
  readonly fortranOrder: boolean
  readonly shape: readonly number[]
}

export interface NpyOptions {
  readonly name?: string
  /** Convert to this element type while reading; default: the nearest to the file's. */
  readonly dtype?: Dtype | undefined
  /** Bytes of the whole file, if known: a header that announces another size is rejected before allocation. */
  readonly bytes?: number | undefined
  /** Keep the raw elements, little-endian and row-major, including types without a dtype. */
  readonly raw?: boolean | undefined
}

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59] as const
const HEADER_KEYS: readonly string[] = ['descr', 'fortran_order', 'shape']
/** Longest header: longer ones describe structured types, which are not supported. */
const MAX_HEADER_BYTES = 1 << 16

/** Parses Python's `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`. @throws SptError `io/npy-header` */
function parseNpyHeader(text: string, name: string): NpyHeader {
  const reject = (what: string): never =>
    failWith('io/npy-header', `${name}: the .npy header ${what}`, {
      expected: "{'descr': …, 'fortran_order': …, 'shape': (…)}",
    })
  if (/['"]descr['"]\s*:\s*[[(]/.test(text))
    failWith('io/unsupported', `${name}: structured elements are not supported`, {
      hint: 'Save each field as an array.',
    })
  const descriptor = /['"]descr['"]\s*:\s*(?:'([^']*)'|"([^"]*)")/.exec(text)
  const order = /['"]fortran_order['"]\s*:\s*(True|False)/.exec(text)
  const shapeText = /['"]shape['"]\s*:\s*\(([^()]*)\)/.exec(text)
  const keys = [...text.matchAll(/(?:'([^']*)'|"([^"]*)")\s*:/g)].map((m) => m[1] ?? m[2]!)
  for (const [k, key] of keys.entries()) {
    if (!HEADER_KEYS.includes(key)) return reject(`has the key '${key}'`)
    if (keys.indexOf(key) < k) return reject(`has the key '${key}' twice`)
  }
  if (!descriptor) return reject('names no element type')
  if (!order) return reject('names no storage order')
  if (!shapeText) return reject('names no shape')
  const items = shapeText[1]!.split(',').map((s) => s.trim())
  if (items.at(-1) === '') items.pop()
  const shape = items.map((item) => {
    if (!/^\d+L?$/.test(item)) return reject(`has the size '${item}' in its shape`)
    return Number.parseInt(item, 10)
  })
  if (!Number.isSafeInteger(shape.reduce((a, b) => a * b, 1)))
    return reject('promises more elements than can exist')
  return { descriptor: descriptor[1] ?? descriptor[2]!, fortranOrder: order[1] === 'True', shape }
}

/** Permutes elements from Fortran to C order; each occupies `width` array elements. */
function toRowMajor(
  values: ValueArray,
  shape: readonly number[],
  out: ValueArray,
  width: number,
): ValueArray {
  // With at most one dimension other than 1 the orders are identical.
  if (shape.filter((n) => n !== 1).length < 2) return values
  const strides: number[] = []
  let stride = 1
  for (const n of shape) {
    strides.push(stride)
    stride *= n
  }
  const index = shape.map(() => 0)
  let from = 0
  for (let e = 0; e < out.length; e += width) {
    for (let k = 0; k < width; k++) out[e + k] = values[from * width + k]!
    for (let k = shape.length - 1; k >= 0; k--) {
      from += strides[k]!
      if (++index[k]! < shape[k]!) break
      from -= strides[k]! * shape[k]!
      index[k] = 0
    }
  }
  return out
}

interface Head {
  readonly header: NpyHeader
  readonly type: ElementType
  /** Offset of the first element in bytes. */
  readonly end: number
}

const endsInHeader = (name: string): never =>
  failWith('io/truncated', `${name}: the file ends inside the .npy header`, { hint: WHOLE })

/** The header at the start of `b`; `null` if it is incomplete. */
function parseHead(b: Uint8Array, name: string): Head | null {
  for (let k = 0; k < Math.min(b.length, MAGIC.length); k++)
    if (b[k] !== MAGIC[k])
      failWith('io/npy-header', `${name}: not a .npy file (the file does not start with \\x93NUMPY)`, {
        hint: 'write the file with numpy.save, or use the ending of the actual format',
      })
  if (b.length < 8) return null
  const version = b[6]!
  if (version < 1 || version > 3)
    failWith('io/unsupported', `${name}: version ${version} of .npy`, { expected: 'version 1, 2 or 3' })
  const start = version === 1 ? 10 : 12
  if (b.length < start) return null
  const length = version === 1 ? b[8]! + b[9]! * 256 : new DataView(b.buffer, b.byteOffset).getUint32(8, true)
  if (length > MAX_HEADER_BYTES)
    failWith('io/npy-header', `${name}: a .npy header of ${length} bytes`, {
      expected: `at most ${MAX_HEADER_BYTES} bytes`,
    })
  const end = start + length
  if (b.length < end) return null
  const header = parseNpyHeader(
    new TextDecoder(version === 3 ? 'utf-8' : 'latin1').decode(b.subarray(start, end)),
    name,
  )
  const type = elementType(header.descriptor, name)
  return { header, type, end }
}

/** Decodes the elements behind a header, in pieces of any size. */
class Elements {
  private readonly name: string
  /** Keeps bytes instead of numbers. */
  private readonly raw: boolean
  private readonly dtype: Dtype
  private readonly values: ValueArray
  private count = 0

  constructor(
    private readonly head: Head,
    { name = 'array', raw, dtype, bytes }: NpyOptions,
  ) {
    const { type, end } = head
    const count = head.header.shape.reduce((p, n) => p * n, 1)
    this.name = name
    if (bytes !== undefined && end + count * type.bytes > bytes)
      this.rejectShort(count, Math.max(0, Math.floor((bytes - end) / type.bytes)))
    this.raw = type.dtype === null || raw === true
    this.dtype = type.dtype === null || this.raw ? 'u8' : (dtype ?? type.dtype)
    this.values = valueArray(this.dtype, this.raw ? count * type.bytes : count, name)
  }

  /** Decodes whole elements; returns the remaining bytes. */
  push(b: Uint8Array): Uint8Array {
    const { values, dtype, name, count: from } = this
    const { type } = this.head
    const size = this.raw ? 1 : type.bytes
    const count = Math.floor(b.length / size)
    if (from + count > values.length || (from + count === values.length && b.length > count * size))
      failWith(
        'io/extra-data',
        `${name}: more bytes follow the ${values.length} elements that the header promises`,
        { hint: 'Save one array to a file, or several as .npz.' },
      )
    this.count = from + count
    if (this.raw) values.set(b, from)
    else readElements(type, b, { values, dtype, from, name })
    return b.subarray(count * size)
  }

  private rejectShort(count: number, available: number): never {
    return failWith(
      'io/truncated',
      `${this.name}: the file ends before the ${count} elements that the header promises (after ${available})`,
      { hint: WHOLE },
    )
  }

  finish(remaining: Uint8Array): NpyArray {
    const { head, dtype, values, raw, name } = this
    const { header, type } = head
    if (this.count < values.length || remaining.length > 0) this.rejectShort(values.length, this.count)
    if (type.dtype === null) return { header, type, dtype: null, bytes: values as Uint8Array }
    const width = raw ? type.bytes : 1
    if (raw && !type.littleEndian)
      for (let at = 0; at < values.length; at += width) values.subarray(at, at + width).reverse()
    const ordered = header.fortranOrder
      ? toRowMajor(values, header.shape, valueArray(dtype, values.length, name), width)
      : values
    return raw
      ? { header, type, dtype: null, bytes: ordered as Uint8Array }
      : { header, type, dtype, values: ordered }
  }
}

/** Numbers in row-major order, or bytes for text and for `raw`. */
export type NpyArray = Omit<Head, 'end'> &
  (
    | { readonly dtype: Dtype; readonly values: ValueArray }
    | { readonly dtype: null; readonly bytes: Uint8Array }
  )

/**
 * Reads any array. @throws SptError `io/npy-header`, `io/unsupported`, `io/truncated`, `io/extra-data`,
 * `io/value-range`
 */
export async function readNpyArray(chunks: Chunks, options: NpyOptions = {}): Promise<NpyArray> {
  const { name = 'array' } = options
  let elements: Elements | undefined
  let pending: Uint8Array = new Uint8Array(0)
  for await (const chunk of chunks) {
    let bytes = concat(pending, chunk)
    const head = elements ? null : parseHead(bytes, name)
    if (head) {
      elements = new Elements(head, options)
      bytes = bytes.subarray(head.end)
    }
    pending = (elements ? elements.push(bytes) : bytes).slice()
  }
  return elements ? elements.finish(pending) : endsInHeader(name)
}

/** Type and shape of an array; reads its header only. @throws as `readNpyArray` */
export async function readNpyHeader(chunks: Chunks, name: string): Promise<Omit<Head, 'end'>> {
  let bytes: Uint8Array = new Uint8Array(0)
  for await (const chunk of chunks) {
    bytes = concat(bytes, chunk.slice())
    const head = parseHead(bytes, name)
    if (head) return head
  }
  return endsInHeader(name)
}

/** An array of numbers as a row-major dense tensor; 64-bit integers become 32-bit ones if they fit. */
export async function readNpy(chunks: Chunks, options: NpyOptions = {}): Promise<DenseTensor> {
  return denseOf(await readNpyArray(chunks, options), options.name ?? 'array')
}

/** Rejects an array of text. @throws SptError `io/unsupported` */
export function rejectText(name: string): never {
  return failWith('io/unsupported', `${name} holds text, not numbers`, { expected: 'an array of numbers' })
}

/** The array as a dense tensor. @throws SptError `io/unsupported` for text */
export function denseOf(array: NpyArray, name: string): DenseTensor {
  if (array.dtype === null) return rejectText(name)
  return { kind: 'dense', shape: array.header.shape, values: array.values, dtype: array.dtype }
}
