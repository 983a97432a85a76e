/**
 * Tile-wise sparsity (Guo et al. 2020): prunes whole outputs, then inputs within every `granularity` remaining outputs. Both
 * passes prune about the same share of their candidates.
 */
import { expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import { best, elementsOf, layerCapacities, lowestVectors, targetOf } from '../selection.ts'
import { chunk, maskOf, nonzeroIndices } from '../tiles.ts'
import type { LayerMasks, LayerScores, LayerShape, Pattern, Tile } from '../types.ts'
import { checkGranularity, INDEX_BYTES } from './parameters.ts'

export interface TileWiseOptions {
  /** Outputs of a tile; the last tile of a layer may be smaller. */
  readonly granularity: number
}

/** @throws SptError `prune/parameter` */
export function tileWise(options: TileWiseOptions): Pattern {
  expectOptions('tileWise', options, ['granularity'])
  const { granularity } = options
  checkGranularity(granularity)
  return {
    name: 'tw',
    text: `tw(${granularity})`,
    leastKept: granularity,
    async masks(layers, sparsity) {
      const tiles = await prunedTiles(layers, sparsity, granularity)
      return { kept: layers.shapes.map(({ rows, cols }, k) => maskOf(tiles[k]!, rows, cols)), tiles }
    },
    bytes: ({ tiles, shape }) => tileBytes(tiles, shape.valueBytes ?? 4),
  }
}

/** Bytes of tiles: values in rows, both index arrays, and offsets of tiles. */
export const tileBytes = (tiles: LayerMasks['tiles'], valueBytes: number): number =>
  (tiles ?? []).reduce(
    (sum, { outputs, inputs }) =>
      sum + outputs.length * inputs.length * valueBytes + (outputs.length + inputs.length + 3) * INDEX_BYTES,
    3 * INDEX_BYTES,
  )

/** Share that each of the two passes prunes. */
const passSparsity = (sparsity: number): number => 1 - Math.sqrt(1 - sparsity)

/**
 * Non-empty tiles of every layer, at a sparsity over all layers. `minOutputs`: minimum outputs of the last tile, which is filled up
 * with the best pruned outputs.
 */
export async function prunedTiles(
  layers: LayerScores,
  sparsity: number,
  granularity: number,
  minOutputs = 1,
): Promise<Tile[][]> {
  const { shapes } = layers
  const elements = elementsOf(shapes)
  const outputs = await keptOutputs(layers, targetOf(passSparsity(sparsity), elements), (kept) => {
    const last = kept % granularity
    return last > 0 && last < minOutputs ? minOutputs - last : 0
  })
  const groups = outputs.map((kept) => chunk(kept, granularity))
  const prunedElements = shapes.map(({ rows, cols }, k) => (rows - outputs[k]!.length) * cols)
  const target = targetOf(sparsity, elements) - prunedElements.reduce((a, b) => a + b, 0)
  const capacities = layerCapacities(layers).map((capacity, k) => capacity - prunedElements[k]!)
  const vectors = {
    pass: 'inputs of tiles',
    count: ({ cols }: LayerShape, k: number) => groups[k]!.length * cols,
    measure(scores: Float32Array, squares: Float64Array, sizes: Uint32Array, k: number) {
      const { cols } = shapes[k]!
      for (const [t, tileOutputs] of groups[k]!.entries()) {
        sizes.fill(tileOutputs.length, t * cols, (t + 1) * cols)
        for (const r of tileOutputs) addSquares(scores, r * cols, squares.subarray(t * cols, (t + 1) * cols))
      }
    },
  }
  const inputs = await lowestVectors(layers, vectors, target, capacities)
  return groups.map((tiles, k) =>
    tiles.flatMap((tileOutputs, t) => {
      const { cols } = shapes[k]!
      const kept = nonzeroIndices(
        inputs[k]!.marks.subarray(t * cols, (t + 1) * cols).map((m) => 1 - m),
        0,
        cols,
      )
      return kept.length === 0 ? [] : [{ outputs: tileOutputs, inputs: kept }]
    }),
  )
}

/** Outputs that each layer keeps. `extraOutputs`: number of additional outputs, given the number of kept outputs. */
async function keptOutputs(
  layers: LayerScores,
  target: number,
  extraOutputs: (kept: number) => number,
): Promise<Int32Array[]> {
  const { shapes } = layers
  const vectors = {
    pass: 'outputs',
    count: ({ rows }: LayerShape) => rows,
    measure(scores: Float32Array, squares: Float64Array, sizes: Uint32Array, k: number) {
      const { rows, cols } = shapes[k]!
      sizes.fill(cols)
      for (let r = 0; r < rows; r++) {
        let sum = 0
        for (let i = r * cols; i < (r + 1) * cols; i++) sum += scores[i]! * scores[i]!
        squares[r] = sum
      }
    },
  }
  const ranked = await lowestVectors(layers, vectors, target, layerCapacities(layers, passSparsity))
  return ranked.map(({ scores, marks }) => {
    const kept = marks.map((m) => 1 - m)
    const pruned = nonzeroIndices(marks, 0, marks.length)
    const flags = new Uint8Array(pruned.length)
    const extra = extraOutputs(marks.length - pruned.length)
    best(
      Array.from(pruned, (r) => scores[r]!),
      pruned.length,
      extra,
      flags,
    )
    for (let i = 0; i < pruned.length; i++) if (flags[i] === 1) kept[pruned[i]!] = 1
    return nonzeroIndices(kept, 0, marks.length)
  })
}

/** Adds the squares of consecutive scores to the sums, element by element. */
export function addSquares(scores: Float32Array, from: number, sums: Float64Array): void {
  for (let c = 0; c < sums.length; c++) {
    const e = scores[from + c]!
    sums[c] = sums[c]! + e * e
  }
}
