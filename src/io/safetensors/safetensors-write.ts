/**
 * Streaming writer for `.safetensors`: the header first, then each tensor's bytes as they arrive. Equal tensors give
 * equal files.
 */
import { failWith, InternalError } from '../../ast/diagnostics/diagnostic.ts'
import type { DenseTensor } from '../../storage/tensor.ts'
import type { Chunks } from '../byte-source.ts'
import { quoteName } from '../json-reader.ts'
import { DESCRIPTORS, littleEndian } from '../numpy/npy-elements.ts'
import type { TensorInfo } from './safetensors-header.ts'
import { MAX_HEADER_BYTES, METADATA, sizeOf, typeNamed, typeOfElement } from './safetensors-header.ts'

/** A tensor to be written. */
export interface SafetensorsPart extends TensorInfo {
  /** Its bytes, little-endian and row-major; called after all preceding tensors are written. */
  readonly chunks: () => Chunks
}

/** The header's length is a multiple of this, so that elements of up to this many bytes are aligned. */
const ALIGN = 8
/** The name of a tensor written alone. */
const SINGLE_TENSOR = 'tensor'

function header(
  parts: readonly SafetensorsPart[],
  sizes: readonly number[],
  metadata: ReadonlyMap<string, string>,
) {
  // JSON.stringify of an object would reorder integer names and drop `__proto__`.
  const members: string[] = []
  const add = (key: string, value: string): void => {
    members.push(`${JSON.stringify(key)}:${value}`)
  }
  if (metadata.size > 0)
    add(METADATA, `{${[...metadata].map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join(',')}}`)
  let at = 0
  for (const [k, { name, type, shape }] of parts.entries()) {
    const end = at + sizes[k]!
    add(name, `{"dtype":"${type}","shape":[${shape.join(',')}],"data_offsets":[${at},${end}]}`)
    at = end
  }
  const text = new TextEncoder().encode(`{${members.join(',')}}`)
  const length = Math.ceil(text.length / ALIGN) * ALIGN
  if (length > MAX_HEADER_BYTES)
    failWith('io/too-large', `a .safetensors header of ${length} bytes`, {
      expected: `at most ${MAX_HEADER_BYTES}: fewer tensors, or shorter names`,
    })
  const out = new Uint8Array(8 + length).fill(32)
  new DataView(out.buffer).setUint32(0, length, true)
  new DataView(out.buffer).setUint32(4, 0, true)
  out.set(text, 8)
  return out
}

function checkName(name: string, usedNames: ReadonlySet<string>): void {
  const reason =
    name === METADATA
      ? 'the format has this name for itself'
      : usedNames.has(name)
        ? 'another is called so'
        : /\p{Surrogate}/u.test(name)
          ? 'it is no whole text'
          : null
  if (reason !== null)
    failWith(
      'io/safetensors-tensor',
      `no tensor of a .safetensors file can be called ${quoteName(name)}: ${reason}`,
      { expected: 'a distinct name for each tensor' },
    )
}

/**
 * The file in chunks. Tensors of wide elements come first, so that each is aligned to its element size; otherwise the
 * given order is kept. @throws SptError `io/safetensors-tensor` for invalid names and shapes, `io/too-large`
 */
export async function* safetensorsChunks(
  parts: readonly SafetensorsPart[],
  metadata: ReadonlyMap<string, string> = new Map(),
): AsyncGenerator<Uint8Array> {
  const names = new Set<string>()
  for (const { name } of parts) {
    checkName(name, names)
    names.add(name)
  }
  const bits = ({ type }: SafetensorsPart): number => typeNamed(type)?.bits ?? 0
  const sorted = parts.toSorted((a, b) => bits(b) - bits(a))
  const sizes = sorted.map(({ name, type, shape }) => sizeOf('a .safetensors file', name, type, shape))
  yield header(sorted, sizes, metadata)
  for (const [k, { name, chunks }] of sorted.entries()) {
    let remaining = sizes[k]!
    for await (const chunk of chunks()) {
      remaining -= chunk.length
      if (remaining < 0) break
      yield chunk
    }
    if (remaining !== 0)
      throw new InternalError(`the tensor ${quoteName(name)} gave other than ${sizes[k]} bytes`)
  }
}

/** A file with a single dense tensor. */
export const denseChunks = (tensor: DenseTensor): Chunks =>
  safetensorsChunks([densePart(SINGLE_TENSOR, tensor)])

/** A dense tensor as a part of a file. */
export const densePart = (name: string, { values, shape, dtype }: DenseTensor): SafetensorsPart => ({
  name,
  type: typeOfElement(dtype === 'bf16' ? 'bf2' : DESCRIPTORS[dtype].slice(1))!,
  shape,
  chunks: () => [littleEndian(values)],
})
