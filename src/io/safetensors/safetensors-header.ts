/**
 * The header of `.safetensors`: JSON with the type, shape and byte range of each tensor. It is accepted only if it is
 * consistent: known types, sizes that match the shapes, and tensors that cover the data without gaps or overlaps.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { WHOLE } from '../byte-source.ts'
import { JsonReader, quoteName } from '../json-reader.ts'
import { type ElementType, elementOf } from '../numpy/npy-elements.ts'

/** The format's limit in bytes, more than any model needs. */
export const MAX_HEADER_BYTES = 100_000_000
/** numpy's and torch's largest rank. */
const MAX_RANK = 64
export const METADATA = '__metadata__'

interface SafetensorsElement {
  readonly bits: number
  /** The element type for reading as numbers; `null` for types that can only be copied. */
  readonly element: ElementType | null
}

const numberType = (bits: number, code: string): SafetensorsElement => ({ bits, element: elementOf(code) })
const rawType = (bits: number): SafetensorsElement => ({ bits, element: null })

/** Element types by their names in the format. Narrow floats have no dtype. */
const TYPES: ReadonlyMap<string, SafetensorsElement> = new Map([
  ['F64', numberType(64, 'f8')],
  ['F32', numberType(32, 'f4')],
  ['F16', numberType(16, 'f2')],
  ['BF16', numberType(16, 'bf2')],
  ['I64', numberType(64, 'i8')],
  ['I32', numberType(32, 'i4')],
  ['I16', numberType(16, 'i2')],
  ['I8', numberType(8, 'i1')],
  ['U64', numberType(64, 'u8')],
  ['U32', numberType(32, 'u4')],
  ['U16', numberType(16, 'u2')],
  ['U8', numberType(8, 'u1')],
  ['BOOL', numberType(8, 'b1')],
  ['C64', rawType(64)],
  ['F8_E4M3', rawType(8)],
  ['F8_E5M2', rawType(8)],
  ['F8_E8M0', rawType(8)],
  ['F8_E4M3FNUZ', rawType(8)],
  ['F8_E5M2FNUZ', rawType(8)],
  ['F6_E2M3', rawType(6)],
  ['F6_E3M2', rawType(6)],
  ['F4', rawType(4)],
])

/** A tensor of a file of several tensors. */
export interface TensorInfo {
  readonly name: string
  /** The `.safetensors` name: `F32`, `BF16`, `I64`, `F8_E4M3`. */
  readonly type: string
  readonly shape: readonly number[]
}

/** A tensor of a `.safetensors` file. */
export interface SafetensorsEntry extends TensorInfo {
  /** The element type for reading as numbers; `null` for types that can only be copied. */
  readonly element: ElementType | null
  /** Offset in the file, and length, in bytes. */
  readonly start: number
  readonly bytes: number
}

export interface SafetensorsHeader {
  /** In the order of their data. */
  readonly entries: ReadonlyMap<string, SafetensorsEntry>
  readonly metadata: ReadonlyMap<string, string>
}

/** The element type of that name. */
export const typeNamed = (type: string): SafetensorsElement | undefined => TYPES.get(type)

/** The format's name for elements with a `.npy` code. */
export const typeOfElement = (code: string): string | undefined =>
  [...TYPES].find(([, t]) => t.element?.code === code)?.[0]

/** Number of elements of a shape; `null` beyond 2^53. */
export function countOf(shape: readonly number[]): number | null {
  let count = 1
  for (const n of shape) {
    count *= n
    if (!Number.isSafeInteger(count)) return null
  }
  return count
}

function rejectTensor(file: string, tensor: string, what: string): never {
  return failWith('io/safetensors-tensor', `${file}: the tensor ${quoteName(tensor)} ${what}`, {
    expected: 'a dtype of the format, a shape, and data_offsets of as many bytes as they take',
  })
}

/** The size of a tensor in bytes. @throws SptError `io/safetensors-tensor` */
export function sizeOf(file: string, name: string, type: string, shape: readonly number[]): number {
  const element = typeNamed(type)
  if (!element)
    return failWith(
      'io/safetensors-tensor',
      `${file}: the tensor ${quoteName(name)} has elements of the type ${quoteName(type)}`,
      { lookup: { name: type, candidates: [...TYPES.keys()] }, expected: [...TYPES.keys()].join(', ') },
    )
  if (shape.length > MAX_RANK)
    rejectTensor(file, name, `has ${shape.length} dimensions, more than ${MAX_RANK}`)
  const count = countOf(shape)
  const bits = count === null ? Number.NaN : count * element.bits
  if (!Number.isSafeInteger(bits) || bits % 8 !== 0)
    rejectTensor(file, name, `cannot have the shape ${shape.join(' × ')} of ${type}`)
  return bits / 8
}

interface TensorDescription {
  readonly type: string
  readonly shape: readonly number[]
  readonly start: number
  readonly end: number
}

/** `{"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}` */
function readDescription(json: JsonReader, file: string, tensor: string): TensorDescription {
  let type: string | undefined
  let shape: number[] | undefined
  let offsets: number[] | undefined
  const integers = (maxCount: number): number[] => {
    const out: number[] = []
    json.list(() => {
      const n = json.integer()
      if (out.push(n) > maxCount) rejectTensor(file, tensor, `lists more than ${maxCount} integers`)
    })
    return out
  }
  json.object((key) => {
    if (key === 'dtype') type = json.string()
    else if (key === 'shape') shape = integers(MAX_RANK)
    else if (key === 'data_offsets') offsets = integers(2)
    else rejectTensor(file, tensor, `has the key ${quoteName(key)}`)
  })
  const [start, end] = offsets ?? []
  if (type === undefined || shape === undefined || start === undefined || end === undefined)
    return rejectTensor(file, tensor, 'lacks its dtype, its shape or its two data_offsets')
  return { type, shape, start, end }
}

/** Checks that tensors cover the data. @throws SptError `io/safetensors-data` */
function checkLayout(file: string, sorted: readonly SafetensorsEntry[], data: number, size: number): void {
  const reject = (what: string): never =>
    failWith('io/safetensors-data', `${file}: ${what}`, {
      expected:
        'tensors that follow each other, from the first byte after the header to the last of the file',
      hint: WHOLE,
    })
  let position = data
  for (const { name, start, bytes } of sorted) {
    if (start > position)
      reject(`${start - position} bytes before the tensor ${quoteName(name)} belong to none`)
    if (start < position)
      reject(`the tensor ${quoteName(name)} overlaps the one before it by ${position - start} bytes`)
    position = start + bytes
  }
  if (position > size) reject(`its tensors end ${position - size} bytes beyond the file`)
  if (position < size) reject(`the last ${size - position} bytes belong to no tensor`)
}

/**
 * Parses the header in `bytes`, of a file of `size` bytes whose data begin at `data`. @throws SptError
 * `io/safetensors-header`, `io/safetensors-tensor`, `io/safetensors-data`
 */
export function parseHeader(bytes: Uint8Array, data: number, size: number, file: string): SafetensorsHeader {
  const reject = (what: string): never =>
    failWith('io/safetensors-header', `${file}: its header ${what}`, {
      expected: 'an object of JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}',
      hint: WHOLE,
    })
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return reject('is not UTF-8')
  }
  if (!text.startsWith('{')) reject("does not begin with '{'")
  const json = new JsonReader(text, reject)
  const metadata = new Map<string, string>()
  const entries: SafetensorsEntry[] = []
  json.object((name) => {
    if (name === METADATA) {
      json.object((key) => metadata.set(key, json.string()))
      return
    }
    const { type, shape, start, end } = readDescription(json, file, name)
    const byteSize = sizeOf(file, name, type, shape)
    if (end - start !== byteSize)
      rejectTensor(file, name, `takes ${byteSize} bytes, and its data_offsets are [${start}, ${end}]`)
    const { element } = typeNamed(type)!
    entries.push({ name, type, element, shape, start: data + start, bytes: byteSize })
  })
  json.end()
  entries.sort((a, b) => a.start - b.start || a.bytes - b.bytes)
  checkLayout(file, entries, data, size)
  return { entries: new Map(entries.map((e) => [e.name, e])), metadata }
}
