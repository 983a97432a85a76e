/** Masks of a model's layers as a `.safetensors` file: BOOL tensors of the layers' names and shapes. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { ByteSource, Chunks } from '../byte-source.ts'
import { openSafetensors, type Safetensors, unknownTensor } from './safetensors.ts'
import type { SafetensorsPart } from './safetensors-write.ts'
import { transpose, type WeightLayer, type Weights } from './weights.ts'

const TYPES = ['BOOL', 'U8']
const TRANSPOSED = 'transposed'

/**
 * A layer's mask as a tensor to be written, in the layer's layout; `kept` has one byte for each element of the matrix.
 */
export function maskPart(
  weights: Weights,
  { name, rows, cols }: WeightLayer,
  kept: Uint8Array,
): SafetensorsPart {
  return {
    ...weights.part(name),
    type: TYPES[0]!,
    chunks: () => [weights.transposed ? transpose(kept, rows, cols) : kept],
  }
}

/** Metadata of a file of masks: the layout of its layers. */
export const masksMetadata = ({ transposed }: Weights): ReadonlyMap<string, string> =>
  new Map(transposed ? [[TRANSPOSED, 'true']] : [])

/** True if layers are stored inputs first, according to the file's metadata. */
export const isTransposed = ({ metadata }: Safetensors): boolean => metadata.get(TRANSPOSED) === 'true'

/**
 * Masks by layer name, one byte for each element of the matrix; bytes are not checked to be 0 or 1. @throws SptError
 * `io/no-layer` for masks of tensors that are not layers of `weights`, `io/kind` for other types, `io/shape-mismatch`
 */
export async function masksOf(
  source: ByteSource,
  weights: Weights,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const file = await openSafetensors(source)
  const out = new Map<string, Uint8Array>()
  for (const name of file.entries.keys()) out.set(name, await readMask(file, weights, name))
  return out
}

/** The mask of one layer. @throws as `masksOf`, and SptError `io/unknown-array` */
export async function readMask(file: Safetensors, weights: Weights, name: string): Promise<Uint8Array> {
  const { type, shape } = file.entries.get(name) ?? unknownTensor(file.name, name, [...file.entries.keys()])
  const layer = weights.layers.find((l) => l.name === name)
  if (!layer)
    return fail({
      code: 'io/no-layer',
      message: `${file.name}#${name} is the mask of no layer of ${weights.name}`,
      lookup: { name, candidates: weights.layers.map((l) => l.name) },
    })
  if (!TYPES.includes(type))
    fail({
      code: 'io/kind',
      message: `${file.name}#${name} has elements of the type ${type}, and is not a mask`,
      expected: `${TYPES.join(' or ')}: 1 for kept elements, 0 for pruned elements`,
    })
  const layerShape = weights.part(name).shape
  if (shape.join() !== layerShape.join())
    fail({
      code: 'io/shape-mismatch',
      message: `the mask ${file.name}#${name} is ${shape.join(' × ')}`,
      expected: `${layerShape.join(' × ')}, as the layer in ${weights.name}`,
    })
  const { rows, cols } = layer
  // Raw bytes: a BOOL other than 0 and 1 would be read as 1.
  const values = await concatChunks(file.chunks(name), rows * cols)
  return weights.transposed ? transpose(values, cols, rows) : values
}

async function concatChunks(chunks: Chunks, bytes: number): Promise<Uint8Array> {
  const out = new Uint8Array(bytes)
  let offset = 0
  for await (const chunk of chunks) {
    out.set(chunk, offset)
    offset += chunk.length
  }
  return out
}
