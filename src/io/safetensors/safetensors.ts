/**
 * Reads `.safetensors`: a header and the tensors' bytes, little-endian and row-major. Tensors are read on request, in
 * pieces.
 */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { DenseTensor } from '../../storage/tensor.ts'
import { type ByteSource, CHUNK_BYTES, WHOLE } from '../byte-source.ts'
import { valueArray } from '../element-arrays.ts'
import { readElements } from '../numpy/npy-elements.ts'
import { countOf, MAX_HEADER_BYTES, parseHeader, type SafetensorsEntry } from './safetensors-header.ts'

export interface Safetensors {
  /** The file's name, for diagnostics. */
  readonly name: string
  /** The tensors by name, in the order of their data. Names are arbitrary strings, never file names. */
  readonly entries: ReadonlyMap<string, SafetensorsEntry>
  /** The file's metadata. */
  readonly metadata: ReadonlyMap<string, string>
  /**
   * A tensor as numbers; 64-bit integers become 32-bit ones if they fit. @throws SptError `io/unknown-array`,
   * `io/unsupported` for types that can only be copied, `io/truncated`, `io/value-range`
   */
  dense(tensor: string, dtype?: Dtype): Promise<DenseTensor>
  /** A tensor's raw bytes, in chunks of whole elements. @throws SptError `io/unknown-array`, `io/truncated` */
  chunks(tensor: string): AsyncIterable<Uint8Array>
}

const LENGTH_BYTES = 8
/** Most names listed in a message. */
const MAX_LISTED = 12

const listNames = (names: readonly string[]): string =>
  names.length > MAX_LISTED
    ? `${names.slice(0, MAX_LISTED).join(', ')} and ${names.length - MAX_LISTED} more`
    : names.join(', ')

/** Reports an unknown tensor. @throws SptError `io/unknown-array` */
export function unknownTensor(file: string, tensor: string, names: readonly string[]): never {
  return fail({
    code: 'io/unknown-array',
    message: `${file} has no tensor '${tensor}'`,
    lookup: { name: tensor, candidates: names },
    expected: names.length > 0 ? listNames(names) : 'another file: this file holds no tensors',
  })
}

/**
 * The tensor at `address`; without one, the file's only tensor. @throws SptError `io/unknown-array`, `io/ambiguous`,
 * `io/empty`
 */
export function tensorAt(file: string, names: readonly string[], address: string | undefined): string {
  if (address !== undefined) return names.includes(address) ? address : unknownTensor(file, address, names)
  const [only] = names
  if (only === undefined)
    return fail({
      code: 'io/empty',
      message: `${file} holds no tensors`,
      hint: 'save at least one tensor to the file',
    })
  if (names.length === 1) return only
  return fail({
    code: 'io/ambiguous',
    message: `${file} holds ${names.length} tensors`,
    expected: listNames(names.slice(0, MAX_LISTED).map((n) => `${file}#${n}`)),
    hint: `name a tensor: ${file}#${only}`,
  })
}

async function readHeader(source: ByteSource) {
  const { name, size } = source
  const reject = (what: string): never =>
    fail({
      code: 'io/safetensors-header',
      message: `${name}: not a .safetensors file (${what})`,
      expected: 'eight bytes with the length of the header, the header, and the data',
      hint: WHOLE,
    })
  const first = await source.read(0, LENGTH_BYTES)
  if (first.length < LENGTH_BYTES) reject(`it has ${first.length} bytes`)
  const view = new DataView(first.buffer, first.byteOffset, LENGTH_BYTES)
  const length = view.getUint32(4, true) * 2 ** 32 + view.getUint32(0, true)
  if (length > MAX_HEADER_BYTES)
    reject(`a header of ${length} bytes, and at most ${MAX_HEADER_BYTES} are read`)
  const data = LENGTH_BYTES + length
  if (data > size) reject(`a header of ${length} bytes in a file of ${size}`)
  const bytes = await source.read(LENGTH_BYTES, data)
  if (bytes.length < length) reject('its header is cut off')
  return parseHeader(bytes, data, size, name)
}

/** An entry's bytes. @throws SptError `io/truncated` if the file has become shorter */
async function* piecesOf(source: ByteSource, { name, start, bytes }: SafetensorsEntry) {
  for (let at = 0; at < bytes; at += CHUNK_BYTES) {
    const requested = Math.min(CHUNK_BYTES, bytes - at)
    const piece = await source.read(start + at, start + at + requested)
    if (piece.length < requested)
      fail({
        code: 'io/truncated',
        message: `${source.name}#${name}: the file ends before the tensor, and did not when opened`,
        hint: 'read the file again when no program is writing it',
      })
    yield piece
  }
}

/**
 * Opens a file; reads its header only. @throws SptError `io/safetensors-header`, `io/safetensors-tensor` (invalid type,
 * shape or size), `io/safetensors-data` (overlaps, gaps, or data beyond the file)
 */
export async function openSafetensors(source: ByteSource): Promise<Safetensors> {
  const { name } = source
  const { entries, metadata } = await readHeader(source)
  const entryOf = (tensor: string) => entries.get(tensor) ?? unknownTensor(name, tensor, [...entries.keys()])
  return {
    name,
    entries,
    metadata,
    async dense(tensor, dtype) {
      const entry = entryOf(tensor)
      const { shape, element, type } = entry
      const label = `${name}#${tensor}`
      if (element?.dtype == null)
        return fail({
          code: 'io/unsupported',
          message: `${label} has elements of the type ${type}, which are copied, not read`,
          expected: 'F64, F32, F16, BF16, integers or BOOL',
        })
      const target = dtype ?? element.dtype
      const values = valueArray(target, countOf(shape)!, label)
      let from = 0
      for await (const piece of piecesOf(source, entry))
        from += readElements(element, piece, { values, dtype: target, from, name: label })
      return { kind: 'dense', shape, values, dtype: target }
    },
    chunks: (tensor) => piecesOf(source, entryOf(tensor)),
  }
}
