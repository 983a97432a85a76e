/**
 * Streaming reader for `.npy` (NEP 1, versions 1, 2 and 3): bytes are decoded directly into an array of the requested
 * type.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { DenseTensor, ValueArray } from '../../storage/tensor.ts'
import { type Chunks, WHOLE } from '../byte-source.ts'
import { valueArray } from '../element-arrays.ts'
import { type ElementType, elementType, readElements } from './npy-elements.ts'

export interface NpyHeader {
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

function endsInHeader(name: string): never {
  return failWith('io/truncated', `${name}: the file ends inside the .npy header`, { hint: WHOLE })
}

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

/** Decodes a file in pieces of any size. */
class Decoder {
  private readonly name: string
  private readonly options: NpyOptions
  private pending: Uint8Array = new Uint8Array(0)
  private header: NpyHeader | null = null
  private type: ElementType | null = null
  private dtype: Dtype = 'u8'
  /** Keeps bytes instead of numbers. */
  private raw = false
  private values: ValueArray = new Uint8Array(0)
  private elementsRead = 0

  constructor(options: NpyOptions) {
    this.name = options.name ?? 'array'
    this.options = options
  }

  push(chunk: Uint8Array): void {
    let bytes = chunk
    if (this.pending.length > 0) {
      bytes = new Uint8Array(this.pending.length + chunk.length)
      bytes.set(this.pending)
      bytes.set(chunk, this.pending.length)
    }
    const used = this.header === null ? this.open(bytes) : 0
    const remainder =
      this.header === null ? bytes : bytes.subarray(used + this.elements(bytes.subarray(used)))
    this.pending = remainder.slice()
  }

  /** Reads the header if it is complete; returns the number of bytes consumed. */
  private open(b: Uint8Array): number {
    const { name } = this
    const head = parseHead(b, name)
    if (!head) return 0
    const { header, type, end } = head
    const count = header.shape.reduce((p, n) => p * n, 1)
    const { bytes } = this.options
    if (bytes !== undefined && end + count * type.bytes > bytes)
      this.rejectShort(count, Math.max(0, Math.floor((bytes - end) / type.bytes)))
    this.header = header
    this.type = type
    this.raw = type.dtype === null || this.options.raw === true
    this.dtype = type.dtype === null || this.raw ? 'u8' : (this.options.dtype ?? type.dtype)
    this.values = valueArray(this.dtype, this.raw ? count * type.bytes : count, name)
    return end
  }

  /** Decodes whole elements; returns the number of bytes consumed. */
  private elements(b: Uint8Array): number {
    const type = this.type!
    const { values, dtype, name } = this
    const size = this.raw ? 1 : type.bytes
    const count = Math.floor(b.length / size)
    const from = this.elementsRead
    if (from + count > values.length || (from + count === values.length && b.length > count * size))
      failWith(
        'io/extra-data',
        `${name}: more bytes follow the ${values.length} elements that the header promises`,
        { hint: 'Save one array to a file, or several as .npz.' },
      )
    this.elementsRead = from + count
    if (this.raw) values.set(b, from)
    else readElements(type, b, { values, dtype, from, name })
    return count * size
  }

  private rejectShort(count: number, available: number): never {
    return failWith(
      'io/truncated',
      `${this.name}: the file ends before the ${count} elements that the header promises (after ${available})`,
      { hint: WHOLE },
    )
  }

  finish(): NpyArray {
    const { header, type, name } = this
    if (header === null || type === null) return endsInHeader(name)
    if (this.elementsRead < this.values.length || this.pending.length > 0)
      this.rejectShort(this.values.length, this.elementsRead)
    const { dtype, values, raw } = this
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
export type NpyArray =
  | {
      readonly header: NpyHeader
      readonly type: ElementType
      readonly dtype: Dtype
      readonly values: ValueArray
    }
  | {
      readonly header: NpyHeader
      readonly type: ElementType
      readonly dtype: null
      readonly bytes: Uint8Array
    }

/**
 * Reads any array. @throws SptError `io/npy-header`, `io/unsupported`, `io/truncated`, `io/extra-data`,
 * `io/value-range`
 */
export async function readNpyArray(chunks: Chunks, options: NpyOptions = {}): Promise<NpyArray> {
  const decoder = new Decoder(options)
  for await (const chunk of chunks) decoder.push(chunk)
  return decoder.finish()
}

/** Type and shape of an array; reads its header only. @throws as `readNpyArray` */
export async function readNpyHeader(chunks: Chunks, name: string): Promise<Omit<Head, 'end'>> {
  let seen = new Uint8Array(0)
  for await (const chunk of chunks) {
    const bytes = new Uint8Array(seen.length + chunk.length)
    bytes.set(seen)
    bytes.set(chunk, seen.length)
    const head = parseHead(bytes, name)
    if (head) return head
    seen = bytes
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
