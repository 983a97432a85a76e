/** Masks of a model's layers as a `.safetensors` file: BOOL tensors of the layers' names and shapes. */
import { fail } from '../ast/diagnostic.ts'
import type { ByteSource, Chunks } from './byte-source.ts'
import { openSafetensors, type Safetensors, unknownTensor } from './safetensors.ts'
import type { SafetensorsPart } from './safetensors-write.ts'
import { transpose, type WeightLayer, type Weights } from './weights.ts'

const TYPES = ['BOOL', 'U8']
const TRANSPOSED = 'transposed'

/** A mask of a layer to be written as the layer lies in its file; `kept` has a byte for each element of the matrix. */
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

/** What a file of masks says of how layers lie in it. */
export const masksMetadata = ({ transposed }: Weights): ReadonlyMap<string, string> =>
  new Map(transposed ? [[TRANSPOSED, 'true']] : [])

/** Whether layers are inputs first, as the file itself says. */
export const isTransposed = ({ metadata }: Safetensors): boolean => metadata.get(TRANSPOSED) === 'true'

/**
 * Masks by the names of layers, each with a byte for each element of the matrix: whether all are 0 or 1 is not looked at.
 * Throws `io/no-layer` for the mask of what is not a layer of `weights`, `io/kind` for other types, `io/shape-mismatch`.
 */
export async function masksOf(
  source: ByteSource,
  weights: Weights,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const file = await openSafetensors(source)
  const out = new Map<string, Uint8Array>()
  for (const name of file.entries.keys()) out.set(name, await maskIn(file, weights, name))
  return out
}

/** One of them. Throws as `masksOf`, and `io/unknown-array`. */
export async function maskIn(file: Safetensors, weights: Weights, name: string): Promise<Uint8Array> {
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
      expected: `${TYPES.join(' or ')}: 1 where an element is kept, 0 where it is pruned`,
    })
  const own = weights.part(name).shape
  if (shape.join() !== own.join())
    fail({
      code: 'io/shape-mismatch',
      message: `the mask ${file.name}#${name} is ${shape.join(' × ')}`,
      expected: `${own.join(' × ')}, as the layer in ${weights.name}`,
    })
  const { rows, cols } = layer
  // As they are: a BOOL of other bits than 0 and 1 would be taken for 1.
  const values = await gathered(file.chunks(name), rows * cols)
  return weights.transposed ? transpose(values, cols, rows) : values
}

async function gathered(chunks: Chunks, bytes: number): Promise<Uint8Array> {
  const out = new Uint8Array(bytes)
  let at = 0
  for await (const chunk of chunks) {
    out.set(chunk, at)
    at += chunk.length
  }
  return out
}
