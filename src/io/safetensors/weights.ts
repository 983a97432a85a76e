/**
 * The tensors of a model, from any file of several tensors: its weight layers, the numbers of one layer at a time, and
 * bytes to be written again, either unchanged or with pruned weights set to 0.
 */
import { failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { type ByteSource, bytesSource, type Chunks } from '../byte-source.ts'
import { openNpz } from '../numpy/npz.ts'
import { hasMatrix, matrixGroups } from '../numpy/scipy.ts'
import { unknownEnding } from '../unknown-ending.ts'
import { openSafetensors, openShards, type Safetensors, unknownTensor } from './safetensors.ts'
import { countOf, type TensorInfo, typeNamed, typeOfElement } from './safetensors-header.ts'
import type { SafetensorsPart } from './safetensors-write.ts'

type WeightTensor = TensorInfo

/** A tensor of floats as a matrix of outputs × inputs: its first dimension, and all others combined. */
export interface WeightLayer {
  readonly name: string
  readonly rows: number
  readonly cols: number
}

/** The layout of layers in their file. */
export interface WeightsOptions {
  /** Inputs first: rows are the last dimension, columns all others combined (GPT-2's Conv1D, Flax). */
  readonly transposed?: boolean
}

export interface Weights {
  /** The file's name, for diagnostics. */
  readonly name: string
  readonly tensors: readonly WeightTensor[]
  readonly transposed: boolean
  /** The tensors of floats with at least two dimensions, and more than one row and column. */
  readonly layers: readonly WeightLayer[]
  /** The file's metadata. */
  readonly metadata: ReadonlyMap<string, string>
  /** The layer of that name. @throws SptError `io/unknown-array`, `io/no-layer` */
  layer(name: string): WeightLayer
  /**
   * The numbers of a layer as a row-major matrix, in a new array. @throws SptError `io/no-layer`, `io/value-range`,
   * `io/truncated`
   */
  weights(layer: string): Promise<Float32Array>
  /** A tensor to be written unchanged. @throws SptError `io/unknown-array` */
  part(tensor: string): SafetensorsPart
  /**
   * A layer to be written with +0 where `kept` (one byte for each element of the matrix) is 0, and otherwise unchanged
   * bit for bit. @throws SptError `io/no-layer`, `io/shape-mismatch`
   */
  masked(layer: string, kept: Uint8Array): SafetensorsPart
}

/** Access to an opened file, independent of its format. */
interface OpenedFile {
  readonly tensors: readonly WeightTensor[]
  readonly metadata: ReadonlyMap<string, string>
  readonly floats: (tensor: string) => Promise<Float32Array>
  /** In chunks of whole elements. */
  readonly chunks: (tensor: string) => Chunks
}

const FLOATS: readonly string[] = ['F64', 'F32', 'F16', 'BF16']

function openSafetensorsWeights(file: Safetensors): OpenedFile {
  return {
    tensors: [...file.entries.values()],
    metadata: file.metadata,
    floats: async (tensor) => (await file.dense(tensor, 'f32')).values as Float32Array,
    chunks: (tensor) => file.chunks(tensor),
  }
}

async function openNpzWeights(source: ByteSource): Promise<OpenedFile> {
  const npz = await openNpz(source)
  if (hasMatrix(npz) || matrixGroups(npz).length > 0)
    failWith('io/kind', `${npz.name} holds a sparse matrix, and weights are dense`, {
      hint: 'write the matrix dense: numpy.savez(path, name=matrix.toarray())',
    })
  const tensors: WeightTensor[] = []
  for (const name of npz.names) {
    const { type, shape } = await npz.elementInfo(name)
    tensors.push({ name, type: typeOfElement(type.code)!, shape })
  }
  return {
    tensors,
    metadata: new Map(),
    floats: async (tensor) => (await npz.dense(tensor, 'f32')).values as Float32Array,
    async *chunks(tensor) {
      yield* bytesSource(tensor, await npz.bytes(tensor)).stream()
    },
  }
}

const OPENERS: Readonly<Record<string, (source: ByteSource) => Promise<OpenedFile>>> = {
  '.safetensors': async (source) => openSafetensorsWeights(await openSafetensors(source)),
  '.safetensors.index.json': async (source) => openSafetensorsWeights(await openShards(source)),
  '.npz': openNpzWeights,
}

function layerOf({ name, type, shape }: WeightTensor, transposed: boolean): WeightLayer | null {
  const rows = shape.at(transposed ? -1 : 0) ?? 0
  const cols = countOf(transposed ? shape.slice(0, -1) : shape.slice(1)) ?? 0
  return FLOATS.includes(type) && shape.length > 1 && rows > 1 && cols > 1 ? { name, rows, cols } : null
}

/** Removes the hint to read a wider type: layers are always read as f32. */
function rethrowRange(error: unknown): never {
  if (!(error instanceof SptError)) throw error
  throw new SptError(
    error.diagnostics.map((d) =>
      d.code === 'io/value-range'
        ? { ...d, hint: 'layers are read as f32: scale the weights, or exclude the layer' }
        : d,
    ),
  )
}

/** Side of the tiles of a transposition, so that both matrices stay in caches. */
const TILE = 32

/** The transposed matrix. */
export function transpose<T extends Float32Array | Uint8Array>(values: T, rows: number, cols: number): T {
  const out = values.slice() as T
  for (let r0 = 0; r0 < rows; r0 += TILE)
    for (let c0 = 0; c0 < cols; c0 += TILE)
      for (let r = r0; r < Math.min(rows, r0 + TILE); r++)
        for (let c = c0; c < Math.min(cols, c0 + TILE); c++) out[c * rows + r] = values[r * cols + c]!
  return out
}

/** The chunks with zeros at pruned elements; `bytes`: element size. */
async function* zeroPruned(chunks: Chunks, kept: Uint8Array, bytes: number): AsyncGenerator<Uint8Array> {
  let at = 0
  for await (const chunk of chunks) {
    const out = chunk.slice()
    const count = out.length / bytes
    for (let e = 0; e < count; e++) {
      const from = e
      while (e < count && kept[at + e] === 0) e++
      // All bits of +0 are 0, in every float type.
      if (e > from) out.fill(0, from * bytes, e * bytes)
    }
    at += count
    yield out
  }
}

/**
 * The tensors of a `.safetensors` file, of the files of a `.safetensors.index.json`, or of an `.npz` of dense arrays.
 * @throws SptError `io/unknown-extension`, `io/kind` for matrices of scipy, and errors of opening the file
 */
export async function weightsOf(
  source: ByteSource,
  { transposed = false }: WeightsOptions = {},
): Promise<Weights> {
  const { name: file } = source
  const ending = Object.keys(OPENERS).find((e) => file.toLowerCase().endsWith(e))
  const opened = await (ending === undefined
    ? unknownEnding(file, Object.keys(OPENERS), 'read weights from')
    : OPENERS[ending]!(source))
  const { tensors, metadata } = opened
  const byName = new Map(tensors.map((t) => [t.name, t]))
  const layers = new Map(tensors.flatMap((t) => layerOf(t, transposed) ?? []).map((l) => [l.name, l]))
  const tensorOf = (tensor: string) => byName.get(tensor) ?? unknownTensor(file, tensor, [...byName.keys()])
  const checkedLayer = (name: string) => {
    const { type, shape } = tensorOf(name)
    return (
      layers.get(name) ??
      failWith(
        'io/no-layer',
        `${file}#${name}, ${shape.join(' × ') || 'a scalar'} of ${type}, is not a layer`,
        {
          expected: `${FLOATS.join(', ')} of two dimensions or more, the ${transposed ? 'last' : 'first'} and all others more than 1`,
        },
      )
    )
  }
  const part = (name: string): SafetensorsPart => {
    const { type, shape } = tensorOf(name)
    return { name, type, shape, chunks: () => opened.chunks(name) }
  }
  return {
    name: file,
    tensors,
    transposed,
    layers: [...layers.values()],
    metadata,
    layer: checkedLayer,
    async weights(name) {
      const { rows, cols } = checkedLayer(name)
      const values = await opened.floats(name).catch(rethrowRange)
      return transposed ? transpose(values, cols, rows) : values
    },
    part,
    masked(name, kept) {
      const { rows, cols } = checkedLayer(name)
      if (kept.length !== rows * cols)
        failWith('io/shape-mismatch', `the mask of ${file}#${name} has ${kept.length} elements`, {
          expected: `${rows} × ${cols}`,
        })
      const original = part(name)
      const bytes = typeNamed(original.type)!.bits / 8
      const maskInFileLayout = () => (transposed ? transpose(kept, rows, cols) : kept)
      return { ...original, chunks: () => zeroPruned(original.chunks(), maskInFileLayout(), bytes) }
    },
  }
}
