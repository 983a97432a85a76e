/**
 * Layers and masks written by `spt prune`, as input of kernels. A layer is a matrix of outputs × inputs with the kept
 * elements, including those of value 0. The weights alone do not distinguish kept zeros from pruned elements.
 */
import { failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { maskedPattern } from '../../storage/masked-pattern.ts'
import { type CoordTensor, storedElements } from '../../storage/tensor.ts'
import { type ByteSource, type Chunks, WHOLE } from '../byte-source.ts'
import { valueArray } from '../element-arrays.ts'
import { quoteName, readJson } from '../json-reader.ts'
import { openSafetensors, type Safetensors, tensorAt, unknownTensor } from './safetensors.ts'
import { MAX_HEADER_BYTES } from './safetensors-header.ts'
import type { SafetensorsPart } from './safetensors-write.ts'
import { transpose, type WeightLayer, type Weights, weightsOf } from './weights.ts'

/** The files of such a folder; `report` is the one that addresses refer to. */
export const PRUNED = {
  weights: 'weights.safetensors',
  masks: 'masks.safetensors',
  rest: 'rest.safetensors',
  report: 'report.json',
} as const

interface PrunedLayerOptions {
  readonly address?: string | undefined
  readonly dtype?: Dtype | undefined
  /**
   * Only the elements in tiles, without values: for a pattern with single elements in addition, as sets that formats
   * take.
   */
  readonly tiles?: boolean | undefined
}

/**
 * Reads a pruned layer. @throws SptError `io/prune-report`, `io/unknown-array`, `io/ambiguous`, `io/not-found`, and
 * errors of opening the files
 */
export async function readPrunedLayer(
  source: ByteSource,
  { address, dtype, tiles = false }: PrunedLayerOptions,
): Promise<CoordTensor> {
  const beside = (name: string): Promise<ByteSource> =>
    source.beside?.(name) ??
    failWith('io/not-found', `${source.name} also needs ${name} of the same folder, which is missing`, {
      hint: `give the path: DIR/${PRUNED.report}#layer`,
    })
  const reportedLayers = await readReport(source)
  const masks = await openSafetensors(await beside(PRUNED.masks))
  const layer = tensorAt(source.name, [...masks.entries.keys()], address)
  const transposed = isTransposed(masks)
  const weights = await weightsOf(await beside(PRUNED.weights), { transposed })
  const { rows, cols } = weights.layer(layer)
  // Layers without masks are kept completely and are not listed in the report.
  const reported = reportedLayers.get(layer)
  if (reported && (reported.rows !== rows || reported.cols !== cols))
    rejectReport(
      source.name,
      `says that ${quoteName(layer)} is ${reported.rows} × ${reported.cols}, and it is ${rows} × ${cols} in ${weights.name}`,
    )
  const kept = checkMask(await readMask(masks, weights, layer), `${masks.name}#${layer}`)
  if (tiles) return maskedPattern(kept, [rows, cols])
  const rest = await orNull(beside(PRUNED.rest))
  if (rest) {
    const otherMask = checkMask(
      await readMask(await openSafetensors(rest), weights, layer),
      `${rest.name}#${layer}`,
    )
    for (let e = 0; e < kept.length; e++) kept[e]! |= otherMask[e]!
  }
  const pattern = maskedPattern(kept, [rows, cols])
  const count = storedElements(pattern)
  if (reported?.kept !== undefined && reported.kept !== count)
    rejectReport(
      source.name,
      `says that ${quoteName(layer)} has ${reported.kept} elements, and its masks keep ${count}`,
    )
  const tensor = await (await openSafetensors(await beside(PRUNED.weights))).dense(layer, dtype)
  const values = valueArray(tensor.dtype, count, `${source.name}#${layer}`)
  const [rowStride, columnStride] = transposed ? [1, rows] : [cols, 1]
  for (let e = 0; e < values.length; e++)
    values[e] = tensor.values[pattern.coords[0]![e]! * rowStride + pattern.coords[1]![e]! * columnStride]!
  return { ...pattern, values, dtype: tensor.dtype }
}

interface ReportedLayer {
  readonly rows: number
  readonly cols: number
  readonly kept: number | undefined
}

function rejectReport(file: string, what: string): never {
  return failWith('io/prune-report', `${file}: the report ${what}`, {
    expected: 'the output folder of spt prune, with masks and weights',
    hint: WHOLE,
  })
}

/** The layers listed in the report. @throws SptError `io/prune-report` */
async function readReport(source: ByteSource): Promise<ReadonlyMap<string, ReportedLayer>> {
  const reject: (what: string) => never = (what) => rejectReport(source.name, what)
  const json = await readJson(source, MAX_HEADER_BYTES, reject)
  let layers: Map<string, ReportedLayer> | undefined
  const layer = (): void => {
    let name: string | undefined
    const numbers: Partial<Record<string, number>> = {}
    json.object((key) => {
      if (key === 'name') name = json.string()
      else if (key === 'rows' || key === 'cols' || key === 'kept') numbers[key] = json.integer()
      else json.skip()
    })
    const { rows, cols, kept } = numbers
    if (name === undefined || rows === undefined || cols === undefined)
      reject(`has a layer${name === undefined ? '' : ` ${quoteName(name)}`} without its name, rows or cols`)
    if (layers!.has(name)) reject(`has the layer ${quoteName(name)} twice`)
    layers!.set(name, { rows, cols, kept })
  }
  json.object((key) => {
    if (key !== 'layers') return json.skip()
    layers = new Map()
    json.list(layer)
  })
  json.end()
  return layers ?? reject('has no layers')
}

/** Checks that a mask contains only 0 and 1. @throws SptError `io/kind` */
function checkMask(mask: Uint8Array, label: string): Uint8Array {
  const invalid = mask.find((x) => x > 1)
  if (invalid !== undefined)
    failWith('io/kind', `${label} has ${invalid}, and is not a mask`, {
      expected: '1 for kept elements, 0 for pruned elements',
    })
  return mask
}

const orNull = (source: Promise<ByteSource>): Promise<ByteSource | null> =>
  source.catch((error) => {
    if (error instanceof SptError && error.code === 'io/not-found') return null
    throw error
  })

// Masks of a model's layers as a `.safetensors` file: BOOL tensors of the layers' names and shapes.

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
const isTransposed = ({ metadata }: Safetensors): boolean => metadata.get(TRANSPOSED) === 'true'

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
async function readMask(file: Safetensors, weights: Weights, name: string): Promise<Uint8Array> {
  const { type, shape } = file.entries.get(name) ?? unknownTensor(file.name, name, [...file.entries.keys()])
  const layer = weights.layers.find((l) => l.name === name)
  if (!layer)
    return failWith('io/no-layer', `${file.name}#${name} is the mask of no layer of ${weights.name}`, {
      lookup: { name, candidates: weights.layers.map((l) => l.name) },
    })
  if (!TYPES.includes(type))
    failWith('io/kind', `${file.name}#${name} has elements of the type ${type}, and is not a mask`, {
      expected: `${TYPES.join(' or ')}: 1 for kept elements, 0 for pruned elements`,
    })
  const layerShape = weights.part(name).shape
  if (shape.join() !== layerShape.join())
    failWith('io/shape-mismatch', `the mask ${file.name}#${name} is ${shape.join(' × ')}`, {
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
