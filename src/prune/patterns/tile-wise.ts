/**
 * Tile-wise sparsity (Guo et al. 2020): prunes whole outputs, then inputs within every `granularity` remaining outputs. Both
 * passes prune about the same share of their candidates.
 */
import { expectOptions } from '../../ast/expect-argument.ts'
import { best, elementsOf, lowestVectors, roomsOf, targetOf, vectorsFor } from '../selection.ts'
import { grouped, maskOf, positions } from '../tiles.ts'
import type { LayerMasks, Pattern, Scored, Tile } from '../types.ts'
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
    async masks(given, sparsity) {
      const tiles = await prunedTiles(given, sparsity, granularity)
      return { kept: given.shapes.map(({ rows, cols }, k) => maskOf(tiles[k]!, rows, cols)), tiles }
    },
    bytes: ({ tiles, shape }) => tileBytes(tiles, shape.valueBytes ?? 4),
  }
}

/** Bytes of the tiles' values in rows, both index arrays, and the offsets of tiles in them. */
export const tileBytes = (tiles: LayerMasks['tiles'], valueBytes: number): number =>
  (tiles ?? []).reduce(
    (sum, { outputs, inputs }) =>
      sum + outputs.length * inputs.length * valueBytes + (outputs.length + inputs.length + 3) * INDEX_BYTES,
    3 * INDEX_BYTES,
  )

/** The share that either of two passes prunes for a sparsity after both. */
const eachPass = (sparsity: number): number => 1 - Math.sqrt(1 - sparsity)

/**
 * Non-empty tiles of every layer, at a sparsity over all layers. `least`: minimum outputs of a last tile; a smaller one is
 * filled up with the best of the pruned outputs.
 */
export async function prunedTiles(
  given: Scored,
  sparsity: number,
  granularity: number,
  least = 1,
): Promise<Tile[][]> {
  const { shapes } = given
  const all = elementsOf(shapes)
  const outputs = await keptOutputs(given, targetOf(eachPass(sparsity), all), (kept) => {
    const last = kept % granularity
    return last > 0 && last < least ? least - last : 0
  })
  const groups = outputs.map((kept) => grouped(kept, granularity))
  const lost = shapes.map(({ rows, cols }, k) => (rows - outputs[k]!.length) * cols)
  const target = targetOf(sparsity, all) - lost.reduce((a, b) => a + b, 0)
  const rooms = roomsOf(given).map((room, k) => room - lost[k]!)
  const marks = await prunedInputs(given, groups, target, rooms)
  let at = 0
  return groups.map((tiles, k) =>
    tiles.flatMap((of) => {
      const { cols } = shapes[k]!
      for (let i = at; i < at + cols; i++) marks[i] = 1 - marks[i]!
      const inputs = positions(marks, at, cols)
      at += cols
      return inputs.length === 0 ? [] : [{ outputs: of, inputs }]
    }),
  )
}

/** `more`: number of further outputs kept, given the number of kept outputs. */
async function keptOutputs(
  given: Scored,
  target: number,
  more: (kept: number) => number,
): Promise<Int32Array[]> {
  const { shapes } = given
  const vectors = vectorsFor(shapes.reduce((sum, s) => sum + s.rows, 0))
  let v = 0
  for (const [k, { rows, cols }] of shapes.entries()) {
    const scores = await given.scores(k, 'outputs')
    vectors.sizes.fill(cols, v, v + rows)
    vectors.layers.fill(k, v, v + rows)
    for (let r = 0; r < rows; r++) {
      let sum = 0
      for (let i = r * cols; i < (r + 1) * cols; i++) sum += scores[i]! * scores[i]!
      vectors.scores[v++] = given.vectorScore(sum, cols)
    }
  }
  const marks = lowestVectors(vectors, target, roomsOf(given, eachPass))
  let at = 0
  return shapes.map(({ rows }) => {
    const kept = marks.subarray(at, at + rows).map((m) => 1 - m)
    const pruned = positions(marks, at, rows)
    const others = vectors.scores.slice(at, at + rows)
    at += rows
    const flags = new Uint8Array(pruned.length)
    best(
      Array.from(pruned, (r) => others[r]!),
      pruned.length,
      more(rows - pruned.length),
      flags,
    )
    for (let i = 0; i < pruned.length; i++) if (flags[i] === 1) kept[pruned[i]!] = 1
    return positions(kept, 0, rows)
  })
}

/** Marks of the inputs of each tile, one tile after the other. */
async function prunedInputs(
  given: Scored,
  groups: readonly (readonly Int32Array[])[],
  target: number,
  rooms: readonly number[],
): Promise<Uint8Array> {
  const { shapes } = given
  const vectors = vectorsFor(groups.reduce((sum, tiles, k) => sum + tiles.length * shapes[k]!.cols, 0))
  let v = 0
  for (const [k, tiles] of groups.entries()) {
    const { cols } = shapes[k]!
    const scores = await given.scores(k, 'inputs of tiles')
    for (const outputs of tiles) {
      const sums = vectors.scores.subarray(v, v + cols)
      vectors.sizes.fill(outputs.length, v, v + cols)
      vectors.layers.fill(k, v, v + cols)
      for (const r of outputs) addSquares(scores, r * cols, sums)
      for (let c = 0; c < cols; c++) sums[c] = given.vectorScore(sums[c]!, outputs.length)
      v += cols
    }
  }
  return lowestVectors(vectors, target, rooms)
}

/** Squares of neighbouring scores, each to its own sum. */
export function addSquares(scores: Float32Array, from: number, sums: Float64Array): void {
  for (let c = 0; c < sums.length; c++) {
    const e = scores[from + c]!
    sums[c] = sums[c]! + e * e
  }
}
