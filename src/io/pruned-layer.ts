/**
 * A layer written by `spt prune`, as input of kernels: a matrix of outputs and inputs with the kept elements, including
 * those of value 0. The weights alone do not distinguish kept zeros from pruned elements.
 */
import { fail, SptError } from '../ast/diagnostic.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { CoordTensor } from '../storage/tensor.ts'
import { type ByteSource, WHOLE } from './byte-source.ts'
import { valueArray } from './element-arrays.ts'
import { quoteName, readJson } from './json-reader.ts'
import { openSafetensors, tensorAt } from './safetensors.ts'
import { MAX_HEADER_BYTES } from './safetensors-header.ts'
import { isTransposed, maskIn } from './weight-masks.ts'
import { weightsOf } from './weights.ts'

/** The files of such a folder; `report` is the one that addresses refer to. */
export const PRUNED = {
  weights: 'weights.safetensors',
  masks: 'masks.safetensors',
  rest: 'rest.safetensors',
  report: 'report.json',
} as const

export interface PrunedLayerOptions {
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
    fail({
      code: 'io/not-found',
      message: `${source.name} also needs ${name} of the same folder, which is missing`,
      hint: `give its path: DIR/${PRUNED.report}#layer`,
    })
  const told = await reportIn(source)
  const masks = await openSafetensors(await beside(PRUNED.masks))
  const layer = tensorAt(source.name, [...masks.entries.keys()], address)
  const transposed = isTransposed(masks)
  const weights = await weightsOf(await beside(PRUNED.weights), { transposed })
  const { rows, cols } = weights.layer(layer)
  // Layers without masks are kept completely and are not listed in the report.
  const of = told.get(layer)
  if (of && (of.rows !== rows || of.cols !== cols))
    wrongReport(
      source.name,
      `says that ${quoteName(layer)} is ${of.rows} × ${of.cols}, and it is ${rows} × ${cols} in ${weights.name}`,
    )
  const kept = checked(await maskIn(masks, weights, layer), `${masks.name}#${layer}`)
  if (tiles)
    return { kind: 'coords', shape: [rows, cols], coords: placesOf(kept, cols), values: null, dtype: 'f32' }
  const rest = await orNone(beside(PRUNED.rest))
  if (rest) {
    const more = checked(await maskIn(await openSafetensors(rest), weights, layer), `${rest.name}#${layer}`)
    for (let e = 0; e < kept.length; e++) kept[e]! |= more[e]!
  }
  const coords = placesOf(kept, cols)
  const count = coords[0].length
  if (of?.kept !== undefined && of.kept !== count)
    wrongReport(
      source.name,
      `says that ${quoteName(layer)} has ${of.kept} elements, and its masks keep ${count}`,
    )
  const all = await (await openSafetensors(await beside(PRUNED.weights))).dense(layer, dtype)
  const values = valueArray(all.dtype, count, `${source.name}#${layer}`)
  const [at, from] = transposed ? [1, rows] : [cols, 1]
  for (let e = 0; e < values.length; e++) values[e] = all.values[coords[0]![e]! * at + coords[1]![e]! * from]!
  return { kind: 'coords', shape: [rows, cols], coords, values, dtype: all.dtype }
}

interface Told {
  readonly rows: number
  readonly cols: number
  readonly kept: number | undefined
}

function wrongReport(file: string, what: string): never {
  return fail({
    code: 'io/prune-report',
    message: `${file}: the report ${what}`,
    expected: 'the output folder of spt prune, with masks and weights',
    hint: WHOLE,
  })
}

/** The layers listed in the report. @throws SptError `io/prune-report` */
async function reportIn(source: ByteSource): Promise<ReadonlyMap<string, Told>> {
  const wrong: (what: string) => never = (what) => wrongReport(source.name, what)
  const json = await readJson(source, MAX_HEADER_BYTES, wrong)
  let layers: Map<string, Told> | undefined
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
      wrong(`has a layer${name === undefined ? '' : ` ${quoteName(name)}`} without its name, rows or cols`)
    if (layers!.has(name)) wrong(`has the layer ${quoteName(name)} twice`)
    layers!.set(name, { rows, cols, kept })
  }
  json.object((key) => {
    if (key !== 'layers') return json.skip()
    layers = new Map()
    json.list(layer)
  })
  json.end()
  return layers ?? wrong('has no layers')
}

/** Checks that a mask contains only 0 and 1. @throws SptError `io/kind` */
function checked(mask: Uint8Array, label: string): Uint8Array {
  const other = mask.find((x) => x > 1)
  if (other !== undefined)
    fail({
      code: 'io/kind',
      message: `${label} has ${other}, and is not a mask`,
      expected: '1 where an element is kept, 0 where it is pruned',
    })
  return mask
}

/** Rows and columns of the kept elements. */
function placesOf(kept: Uint8Array, cols: number): [Int32Array, Int32Array] {
  let n = 0
  for (let e = 0; e < kept.length; e++) n += kept[e]!
  const rows = new Int32Array(n)
  const columns = new Int32Array(n)
  n = 0
  for (let e = 0; e < kept.length; e++)
    if (kept[e] === 1) {
      rows[n] = Math.floor(e / cols)
      columns[n++] = e % cols
    }
  return [rows, columns]
}

const orNone = (source: Promise<ByteSource>): Promise<ByteSource | null> =>
  source.catch((error) => {
    if (error instanceof SptError && error.diagnostics[0]!.code === 'io/not-found') return null
    throw error
  })
