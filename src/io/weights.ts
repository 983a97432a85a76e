/**
 * The tensors of a model, from any file that holds several: which of them are layers of weights, their numbers a layer at a
 * time, and their bytes, as they are or with pruned weights 0, to be written again.
 */
import { fail, SptError } from '../ast/diagnostic.ts'
import { type ByteSource, CHUNK_BYTES, type Chunks } from './byte-source.ts'
import { openNpz } from './npz.ts'
import { openSafetensors, type Safetensors, unknownTensor } from './safetensors.ts'
import { countOf, typeNamed, typeOfElement } from './safetensors-header.ts'
import { openShards } from './safetensors-index.ts'
import type { SafetensorsPart } from './safetensors-write.ts'
import { hasMatrix, matrixGroups } from './scipy.ts'
import { unknownEnding } from './unknown-ending.ts'

export interface WeightTensor {
  readonly name: string
  /** As `.safetensors` name it: `F32`, `BF16`, `I64`. */
  readonly type: string
  readonly shape: readonly number[]
}

/** A tensor of floats as a matrix of outputs and inputs: its first dimension, and all others as one. */
export interface WeightLayer {
  readonly name: string
  readonly rows: number
  readonly cols: number
}

/** How layers lie in their file. */
export interface WeightsOptions {
  /** Inputs first: rows are the last dimension, columns all others (GPT-2's Conv1D, Flax). */
  readonly transposed?: boolean
}

export interface Weights {
  /** The file's name, for diagnostics. */
  readonly name: string
  readonly tensors: readonly WeightTensor[]
  readonly transposed: boolean
  /** Of the tensors, those of floats with two dimensions or more, and rows and columns more than one. */
  readonly layers: readonly WeightLayer[]
  /** What the file says of itself. */
  readonly metadata: ReadonlyMap<string, string>
  /** The layer of that name. Throws `io/unknown-array`, `io/no-layer`. */
  layer(name: string): WeightLayer
  /** The numbers of a layer, row-major as a matrix, in an array of their own each time. Throws `io/no-layer`, `io/value-range`, `io/truncated`. */
  weights(layer: string): Promise<Float32Array>
  /** A tensor to be written as it is. Throws `io/unknown-array`. */
  part(tensor: string): SafetensorsPart
  /**
   * A layer to be written with +0 where `kept`, which has a byte for each element of the matrix, is 0, and else bit for bit as it is.
   * Throws `io/no-layer`, `io/shape-mismatch`.
   */
  masked(layer: string, kept: Uint8Array): SafetensorsPart
}

/** What is asked of a file, whatever its kind. */
interface Opened {
  readonly tensors: readonly WeightTensor[]
  readonly metadata: ReadonlyMap<string, string>
  readonly floats: (tensor: string) => Promise<Float32Array>
  /** Chunks of whole elements. */
  readonly chunks: (tensor: string) => Chunks
}

const FLOATS: readonly string[] = ['F64', 'F32', 'F16', 'BF16']

function ofSafetensors(file: Safetensors): Opened {
  return {
    tensors: [...file.entries.values()],
    metadata: file.metadata,
    floats: async (tensor) => (await file.dense(tensor, 'f32')).values as Float32Array,
    chunks: (tensor) => file.chunks(tensor),
  }
}

async function ofNpz(source: ByteSource): Promise<Opened> {
  const npz = await openNpz(source)
  if (hasMatrix(npz) || matrixGroups(npz).length > 0)
    fail({
      code: 'io/kind',
      message: `${npz.name} holds a sparse matrix, and weights are dense`,
      hint: 'write it dense: numpy.savez(path, name=matrix.toarray())',
    })
  const tensors: WeightTensor[] = []
  for (const name of npz.names) {
    const { type, shape } = await npz.described(name)
    tensors.push({ name, type: typeOfElement(type.code)!, shape })
  }
  return {
    tensors,
    metadata: new Map(),
    floats: async (tensor) => (await npz.dense(tensor, 'f32')).values as Float32Array,
    async *chunks(tensor) {
      const bytes = await npz.bytes(tensor)
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES)
    },
  }
}

/** Whoever may open what, by the endings of names. */
const OPENERS: Readonly<Record<string, (source: ByteSource) => Promise<Opened>>> = {
  '.safetensors': async (source) => ofSafetensors(await openSafetensors(source)),
  '.safetensors.index.json': async (source) => ofSafetensors(await openShards(source)),
  '.npz': ofNpz,
}

function layerOf({ name, type, shape }: WeightTensor, transposed: boolean): WeightLayer | null {
  const rows = shape.at(transposed ? -1 : 0) ?? 0
  const cols = countOf(transposed ? shape.slice(0, -1) : shape.slice(1)) ?? 0
  return FLOATS.includes(type) && shape.length > 1 && rows > 1 && cols > 1 ? { name, rows, cols } : null
}

/** Layers are read as f32 whatever is asked for: there is no wider way. */
function refuseWide(error: unknown): never {
  if (!(error instanceof SptError)) throw error
  throw new SptError(
    error.diagnostics.map((d) =>
      d.code === 'io/value-range'
        ? { ...d, hint: 'layers are read as f32: scale the weights, or exclude the layer' }
        : d,
    ),
  )
}

/** Side of what is turned at once, so that both sides stay in caches. */
const TURNED = 32

/** A matrix with its rows as columns. */
export function transpose<T extends Float32Array | Uint8Array>(values: T, rows: number, cols: number): T {
  const out = values.slice() as T
  for (let r0 = 0; r0 < rows; r0 += TURNED)
    for (let c0 = 0; c0 < cols; c0 += TURNED)
      for (let r = r0; r < Math.min(rows, r0 + TURNED); r++)
        for (let c = c0; c < Math.min(cols, c0 + TURNED); c++) out[c * rows + r] = values[r * cols + c]!
  return out
}

/** The chunks with zeros where nothing is kept; `bytes` of an element. */
async function* zeroed(chunks: Chunks, kept: Uint8Array, bytes: number): AsyncGenerator<Uint8Array> {
  let at = 0
  for await (const chunk of chunks) {
    const out = chunk.slice()
    const count = out.length / bytes
    for (let e = 0; e < count; e++) {
      const from = e
      while (e < count && kept[at + e] === 0) e++
      // All bits of +0 are 0, in every type of floats.
      if (e > from) out.fill(0, from * bytes, e * bytes)
    }
    at += count
    yield out
  }
}

/**
 * The tensors of a `.safetensors` file, of the files of a `.safetensors.index.json`, or of an `.npz` of dense arrays.
 * Throws `io/unknown-extension`, `io/kind` for matrices of scipy, and what opening the file throws.
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
      fail({
        code: 'io/no-layer',
        message: `${file}#${name}, ${shape.join(' × ') || 'a scalar'} of ${type}, is not a layer`,
        expected: `${FLOATS.join(', ')} of two dimensions or more, the ${transposed ? 'last' : 'first'} and all others more than 1`,
      })
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
      const values = await opened.floats(name).catch(refuseWide)
      return transposed ? transpose(values, cols, rows) : values
    },
    part,
    masked(name, kept) {
      const { rows, cols } = checkedLayer(name)
      if (kept.length !== rows * cols)
        fail({
          code: 'io/shape-mismatch',
          message: `the mask of ${file}#${name} has ${kept.length} elements`,
          expected: `${rows} × ${cols}`,
        })
      const whole = part(name)
      const bytes = typeNamed(whole.type)!.bits / 8
      const inFile = () => (transposed ? transpose(kept, rows, cols) : kept)
      return { ...whole, chunks: () => zeroed(whole.chunks(), inFile(), bytes) }
    },
  }
}
