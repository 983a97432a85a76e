/**
 * The header of `.safetensors`: JSON with the type, shape and byte range of each tensor. It is accepted only if it is
 * consistent: known types, sizes that match the shapes, and tensors that cover the data without gaps or overlaps.
 */
import { fail } from '../ast/diagnostic.ts'
import { WHOLE } from './byte-source.ts'
import { JsonReader, quoteName } from './json-reader.ts'
import { type ElementType, elementOf } from './npy-elements.ts'

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

const readable = (bits: number, code: string): SafetensorsElement => ({ bits, element: elementOf(code) })
const opaque = (bits: number): SafetensorsElement => ({ bits, element: null })

/** Element types by their names in the format. Narrow floats have no dtype. */
const TYPES: ReadonlyMap<string, SafetensorsElement> = new Map([
  ['F64', readable(64, 'f8')],
  ['F32', readable(32, 'f4')],
  ['F16', readable(16, 'f2')],
  ['BF16', readable(16, 'bf2')],
  ['I64', readable(64, 'i8')],
  ['I32', readable(32, 'i4')],
  ['I16', readable(16, 'i2')],
  ['I8', readable(8, 'i1')],
  ['U64', readable(64, 'u8')],
  ['U32', readable(32, 'u4')],
  ['U16', readable(16, 'u2')],
  ['U8', readable(8, 'u1')],
  ['BOOL', readable(8, 'b1')],
  ['C64', opaque(64)],
  ['F8_E4M3', opaque(8)],
  ['F8_E5M2', opaque(8)],
  ['F8_E8M0', opaque(8)],
  ['F8_E4M3FNUZ', opaque(8)],
  ['F8_E5M2FNUZ', opaque(8)],
  ['F6_E2M3', opaque(6)],
  ['F6_E3M2', opaque(6)],
  ['F4', opaque(4)],
])

/** A tensor of a `.safetensors` file. */
export interface SafetensorsEntry {
  readonly name: string
  /** The format's name: `F32`, `BF16`, `I64`, `F8_E4M3`. */
  readonly type: string
  /** The element type for reading as numbers; `null` for types that can only be copied. */
  readonly element: ElementType | null
  readonly shape: readonly number[]
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

function wrongTensor(file: string, tensor: string, what: string): never {
  return fail({
    code: 'io/safetensors-tensor',
    message: `${file}: the tensor ${quoteName(tensor)} ${what}`,
    expected: 'a dtype of the format, a shape, and data_offsets of as many bytes as they take',
  })
}

/** The size of a tensor in bytes. @throws SptError `io/safetensors-tensor` */
export function sizeOf(file: string, name: string, type: string, shape: readonly number[]): number {
  const known = typeNamed(type)
  if (!known)
    return fail({
      code: 'io/safetensors-tensor',
      message: `${file}: the tensor ${quoteName(name)} has elements of the type ${quoteName(type)}`,
      lookup: { name: type, candidates: [...TYPES.keys()] },
      expected: [...TYPES.keys()].join(', '),
    })
  if (shape.length > MAX_RANK)
    wrongTensor(file, name, `has ${shape.length} dimensions, more than ${MAX_RANK}`)
  const count = countOf(shape)
  const bits = count === null ? Number.NaN : count * known.bits
  if (!Number.isSafeInteger(bits) || bits % 8 !== 0)
    wrongTensor(file, name, `cannot have the shape ${shape.join(' × ')} of ${type}`)
  return bits / 8
}

interface Described {
  readonly type: string
  readonly shape: readonly number[]
  readonly start: number
  readonly end: number
}

/** `{"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}` */
function described(json: JsonReader, file: string, tensor: string): Described {
  let type: string | undefined
  let shape: number[] | undefined
  let offsets: number[] | undefined
  const integers = (most: number): number[] => {
    const out: number[] = []
    json.list(() => {
      const n = json.integer()
      if (out.push(n) > most) wrongTensor(file, tensor, `lists more than ${most} integers`)
    })
    return out
  }
  json.object((key) => {
    if (key === 'dtype') type = json.string()
    else if (key === 'shape') shape = integers(MAX_RANK)
    else if (key === 'data_offsets') offsets = integers(2)
    else wrongTensor(file, tensor, `has the key ${quoteName(key)}`)
  })
  const [start, end] = offsets ?? []
  if (type === undefined || shape === undefined || start === undefined || end === undefined)
    return wrongTensor(file, tensor, 'lacks its dtype, its shape or its two data_offsets')
  return { type, shape, start, end }
}

/** Checks that tensors cover the data. @throws SptError `io/safetensors-data` */
function checkLayout(file: string, sorted: readonly SafetensorsEntry[], data: number, size: number): void {
  const wrong = (what: string): never =>
    fail({
      code: 'io/safetensors-data',
      message: `${file}: ${what}`,
      expected:
        'tensors that follow each other, from the first byte after the header to the last of the file',
      hint: WHOLE,
    })
  let at = data
  for (const { name, start, bytes } of sorted) {
    if (start > at) wrong(`${start - at} bytes before the tensor ${quoteName(name)} belong to none`)
    if (start < at) wrong(`the tensor ${quoteName(name)} overlaps the one before it by ${at - start} bytes`)
    at = start + bytes
  }
  if (at > size) wrong(`its tensors end ${at - size} bytes beyond the file`)
  if (at < size) wrong(`the last ${size - at} bytes belong to no tensor`)
}

/**
 * Parses the header in `bytes`, of a file of `size` bytes whose data begin at `data`. @throws SptError
 * `io/safetensors-header`, `io/safetensors-tensor`, `io/safetensors-data`
 */
export function parseHeader(bytes: Uint8Array, data: number, size: number, file: string): SafetensorsHeader {
  const wrong = (what: string): never =>
    fail({
      code: 'io/safetensors-header',
      message: `${file}: its header ${what}`,
      expected: 'an object of JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}',
      hint: WHOLE,
    })
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return wrong('is not UTF-8')
  }
  if (!text.startsWith('{')) wrong("does not begin with '{'")
  const json = new JsonReader(text, wrong)
  const metadata = new Map<string, string>()
  const entries: SafetensorsEntry[] = []
  json.object((name) => {
    if (name === METADATA) {
      json.object((key) => metadata.set(key, json.string()))
      return
    }
    const { type, shape, start, end } = described(json, file, name)
    const taken = sizeOf(file, name, type, shape)
    if (end - start !== taken)
      wrongTensor(file, name, `takes ${taken} bytes, and its data_offsets are [${start}, ${end}]`)
    const { element } = typeNamed(type)!
    entries.push({ name, type, element, shape, start: data + start, bytes: taken })
  })
  json.end()
  entries.sort((a, b) => a.start - b.start || a.bytes - b.bytes)
  checkLayout(file, entries, data, size)
  return { entries: new Map(entries.map((e) => [e.name, e])), metadata }
}
