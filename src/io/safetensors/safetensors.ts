/**
 * Reads `.safetensors`: a header and the tensors' bytes, little-endian and row-major. Tensors are read on request, in
 * pieces.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { DenseTensor } from '../../storage/tensor.ts'
import { type ByteSource, pieces, WHOLE } from '../byte-source.ts'
import { valueArray } from '../element-arrays.ts'
import { quoteName, readJson } from '../json-reader.ts'
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
  return failWith('io/unknown-array', `${file} has no tensor '${tensor}'`, {
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
    return failWith('io/empty', `${file} holds no tensors`, { hint: 'save at least one tensor to the file' })
  if (names.length === 1) return only
  return failWith('io/ambiguous', `${file} holds ${names.length} tensors`, {
    expected: listNames(names.slice(0, MAX_LISTED).map((n) => `${file}#${n}`)),
    hint: `name a tensor: ${file}#${only}`,
  })
}

async function readHeader(source: ByteSource) {
  const { name, size } = source
  const reject = (what: string): never =>
    failWith('io/safetensors-header', `${name}: not a .safetensors file (${what})`, {
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
const piecesOf = (source: ByteSource, { name, start, bytes }: SafetensorsEntry): AsyncIterable<Uint8Array> =>
  pieces(
    async (from, to) => {
      const piece = await source.read(from, to)
      if (piece.length === to - from) return piece
      return failWith(
        'io/truncated',
        `${source.name}#${name}: the file ends before the tensor, and did not when opened`,
        { hint: 'read the file again when no program is writing it' },
      )
    },
    start,
    start + bytes,
  )

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
        return failWith(
          'io/unsupported',
          `${label} has elements of the type ${type}, which are copied, not read`,
          { expected: 'F64, F32, F16, BF16, integers or BOOL' },
        )
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

// Reads `.safetensors.index.json`, the index of a model in several files (shards): `{"weight_map":
// {"layer.0.weight": "model-00001-of-00002.safetensors", …}}`. Shards must be in the same folder.

function rejectIndex(file: string, what: string): never {
  return failWith('io/safetensors-index', `${file}: the index ${what}`, {
    expected: '{"weight_map": {"tensor": "file.safetensors", …}}, the files in the same folder',
  })
}

/** The file of each tensor. @throws SptError `io/safetensors-index` */
async function readIndex(source: ByteSource): Promise<ReadonlyMap<string, string>> {
  const { name } = source
  const json = await readJson(source, MAX_HEADER_BYTES, (what) => rejectIndex(name, what))
  let files: Map<string, string> | undefined
  json.object((key) => {
    if (key !== 'weight_map') return json.skip()
    files = new Map()
    json.object((tensor) => {
      const file = json.string()
      // A plain name: a downloaded index must not refer to files outside its folder.
      if (!/^[^/\\:\0]+\.safetensors$/i.test(file))
        rejectIndex(
          name,
          `has the tensor ${quoteName(tensor)} in ${quoteName(file)}, which is no file of its folder`,
        )
      files!.set(tensor, file)
    })
  })
  json.end()
  return files ?? rejectIndex(name, 'has no weight_map')
}

function openShard(source: ByteSource, file: string): Promise<Safetensors> {
  if (!source.beside)
    return rejectIndex(source.name, `names the file ${quoteName(file)}, and only itself was given`)
  return source.beside(file).then(openSafetensors)
}

/**
 * The shard that contains the tensor at `address`, and its name there. @throws SptError `io/safetensors-index`, and
 * errors of opening it
 */
export async function openShardOf(
  source: ByteSource,
  address: string | undefined,
): Promise<{ readonly file: Safetensors; readonly tensor: string }> {
  const files = await readIndex(source)
  const tensor = tensorAt(source.name, [...files.keys()], address)
  const shard = files.get(tensor)!
  const file = await openShard(source, shard)
  if (!file.entries.has(tensor)) rejectMissing(source.name, shard, tensor)
  return { file, tensor }
}

function rejectMissing(index: string, shard: string, tensor: string): never {
  return rejectIndex(index, `has the tensor ${quoteName(tensor)} in ${quoteName(shard)}, which has it not`)
}

/** All shards combined. @throws SptError `io/safetensors-index` if they and the index list different tensors */
export async function openShards(source: ByteSource): Promise<Safetensors> {
  const { name } = source
  const files = await readIndex(source)
  const shards = new Map<string, Safetensors>()
  for (const file of new Set(files.values())) shards.set(file, await openShard(source, file))
  for (const [tensor, file] of files)
    if (!shards.get(file)!.entries.has(tensor)) rejectMissing(name, file, tensor)
  for (const [file, { entries }] of shards)
    for (const tensor of entries.keys())
      if (files.get(tensor) !== file)
        rejectIndex(name, `does not list the tensor ${quoteName(tensor)}, which ${quoteName(file)} has`)
  const opened = [...shards.values()]
  const entries = new Map(opened.flatMap((s) => [...s.entries]))
  const shardOf = (tensor: string): Safetensors => {
    const file = files.get(tensor) ?? unknownTensor(name, tensor, [...entries.keys()])
    return shards.get(file)!
  }
  return {
    name,
    entries,
    // If several shards define a key, the first one's value is used.
    metadata: new Map(opened.toReversed().flatMap((s) => [...s.metadata])),
    dense: async (tensor, dtype) => shardOf(tensor).dense(tensor, dtype),
    chunks: (tensor) => shardOf(tensor).chunks(tensor),
  }
}
