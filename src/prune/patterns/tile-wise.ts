/**
 * Tile-wise sparsity (Guo et al. 2020): prunes whole outputs, then inputs within every `granularity` remaining outputs. Both
 * passes prune about the same share of their candidates.
 */
import { expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import { best, elementsOf, layerCapacities, lowestVectors, targetOf, vectorsFor } from '../selection.ts'
import { chunk, maskOf, nonzeroIndices } from '../tiles.ts'
import type { LayerMasks, LayerScores, Pattern, Tile } from '../types.ts'
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
  const marks = await prunedInputs(layers, groups, target, capacities)
  let offset = 0
  return groups.map((tiles, k) =>
    tiles.flatMap((tileOutputs) => {
      const { cols } = shapes[k]!
      for (let i = offset; i < offset + cols; i++) marks[i] = 1 - marks[i]!
      const inputs = nonzeroIndices(marks, offset, cols)
      offset += cols
      return inputs.length === 0 ? [] : [{ outputs: tileOutputs, inputs }]
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
  const vectors = vectorsFor(shapes.reduce((sum, s) => sum + s.rows, 0))
  let v = 0
  for (const [k, { rows, cols }] of shapes.entries()) {
    const scores = await layers.scores(k, 'outputs')
    vectors.sizes.fill(cols, v, v + rows)
    vectors.layers.fill(k, v, v + rows)
    for (let r = 0; r < rows; r++) {
      let sum = 0
      for (let i = r * cols; i < (r + 1) * cols; i++) sum += scores[i]! * scores[i]!
      vectors.scores[v++] = layers.vectorScore(sum, cols)
    }
  }
  const marks = lowestVectors(vectors, target, layerCapacities(layers, passSparsity))
  let offset = 0
  return shapes.map(({ rows }) => {
    const kept = marks.subarray(offset, offset + rows).map((m) => 1 - m)
    const pruned = nonzeroIndices(marks, offset, rows)
    const layerScores = vectors.scores.slice(offset, offset + rows)
    offset += rows
    const flags = new Uint8Array(pruned.length)
    best(
      Array.from(pruned, (r) => layerScores[r]!),
      pruned.length,
      extraOutputs(rows - pruned.length),
      flags,
    )
    for (let i = 0; i < pruned.length; i++) if (flags[i] === 1) kept[pruned[i]!] = 1
    return nonzeroIndices(kept, 0, rows)
  })
}

/** Marks pruned inputs of all tiles, concatenated. */
async function prunedInputs(
  layers: LayerScores,
  groups: readonly (readonly Int32Array[])[],
  target: number,
  capacities: readonly number[],
): Promise<Uint8Array> {
  const { shapes } = layers
  const vectors = vectorsFor(groups.reduce((sum, tiles, k) => sum + tiles.length * shapes[k]!.cols, 0))
  let v = 0
  for (const [k, tiles] of groups.entries()) {
    const { cols } = shapes[k]!
    const scores = await layers.scores(k, 'inputs of tiles')
    for (const outputs of tiles) {
      const sums = vectors.scores.subarray(v, v + cols)
      vectors.sizes.fill(outputs.length, v, v + cols)
      vectors.layers.fill(k, v, v + cols)
      for (const r of outputs) addSquares(scores, r * cols, sums)
      for (let c = 0; c < cols; c++) sums[c] = layers.vectorScore(sums[c]!, outputs.length)
      v += cols
    }
  }
  return lowestVectors(vectors, target, capacities)
}

/** Adds the squares of consecutive scores to the sums, element by element. */
export function addSquares(scores: Float32Array, from: number, sums: Float64Array): void {
  for (let c = 0; c < sums.length; c++) {
    const e = scores[from + c]!
    sums[c] = sums[c]! + e * e
  }
}
