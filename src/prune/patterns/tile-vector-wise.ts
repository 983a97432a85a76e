/**
 * TVW: tiles, of whose inputs, in the order in which they are stored, each output keeps the best two of every four. What is stored is
 * the weights alone, and fours are counted over the inputs that these have: so each input of a tile is kept by one of its outputs.
 */
import { expectOptions } from '../../ast/expect-argument.ts'
import { best } from '../selection.ts'
import type { Pattern, Tile } from '../types.ts'
import { checkParameter, kept } from './parameters.ts'
import { prunedTiles, type TileWiseOptions, tileBytes } from './tile-wise.ts'

const KEPT = 2
const OF = 4
const LEAST = 2

/** @throws SptError `prune/parameter` */
export function tileVectorWise(options: TileWiseOptions): Pattern {
  expectOptions('tileVectorWise', options, ['granularity'])
  const { granularity } = options
  // Of one output two of four would leave inputs without any.
  checkParameter('granularity', granularity, LEAST)
  return {
    name: 'tvw',
    text: `tvw(${granularity})`,
    least: 1 - KEPT / OF,
    async masks(given, sparsity) {
      const ofTiles = (s: number): number => Math.max(0, 1 - ((1 - s) * OF) / KEPT)
      const limits = given.limits.map(ofTiles)
      const tiles = await prunedTiles({ ...given, limits }, ofTiles(sparsity), granularity, LEAST)
      const masks: Uint8Array[] = []
      for (const [k, { rows, cols }] of given.shapes.entries()) {
        const scores = await given.scores(k, 'two of four')
        const mask = new Uint8Array(rows * cols)
        tiles[k] = tiles[k]!.map((tile) => (tile.outputs.length === 1 ? bestTwo(scores, cols, tile) : tile))
        for (const tile of tiles[k]) keepTwoOfFour(scores, cols, tile, mask)
        masks.push(mask)
      }
      return { kept: masks, tiles }
    },
    // Half of the values, each with two bits that say which of the four it is.
    bytes: ({ shape: { valueBytes = 4 }, kept: mask, tiles }) =>
      tileBytes(tiles, 0) + kept(mask) * valueBytes + Math.ceil(kept(mask) / 4),
  }
}

/** Completes a last tile of one output, of which nothing is pruned. */
function bestTwo(scores: Float32Array, cols: number, { outputs, inputs }: Tile): Tile {
  const flags = new Uint8Array(inputs.length)
  const values = Float32Array.from(inputs, (c) => scores[outputs[0]! * cols + c]!)
  best(values, inputs.length, KEPT, flags)
  return { outputs, inputs: inputs.filter((_, i) => flags[i] === 1) }
}

function keepTwoOfFour(
  scores: Float32Array,
  cols: number,
  { outputs, inputs }: Tile,
  mask: Uint8Array,
): void {
  const values = new Float32Array(OF)
  const flags = new Uint8Array(OF)
  for (let from = 0; from < inputs.length; from += OF) {
    const four = inputs.subarray(from, from + OF)
    const holders = new Int32Array(four.length)
    for (const r of outputs) {
      for (let i = 0; i < four.length; i++) values[i] = scores[r * cols + four[i]!]!
      best(values, four.length, KEPT, flags)
      for (let i = 0; i < four.length; i++) {
        mask[r * cols + four[i]!] = flags[i]!
        holders[i]! += flags[i]!
      }
    }
    for (let i = 0; i < four.length; i++)
      if (holders[i] === 0) give(i, { scores, cols, outputs, four, holders }, mask)
  }
}

interface Four {
  readonly scores: Float32Array
  readonly cols: number
  readonly outputs: Int32Array
  readonly four: Int32Array
  /** Number of outputs that keep each element of the group of four. */
  readonly holders: Int32Array
}

/**
 * Gives an input that no output keeps the place of another one in that output where the least is lost; of equal ones the first. Two
 * outputs have four places, so that one of the others is kept twice.
 */
function give(i: number, { scores, cols, outputs, four, holders }: Four, mask: Uint8Array): void {
  let least = 0
  let [row, from] = [-1, 0]
  for (const r of outputs)
    for (let d = 0; d < four.length; d++) {
      if (holders[d]! < 2 || mask[r * cols + four[d]!] === 0) continue
      const [was, is] = [scores[r * cols + four[d]!]!, scores[r * cols + four[i]!]!]
      // Products with gradients may be infinite.
      const lost = was === is ? 0 : was - is
      if (row < 0 || lost < least) [least, row, from] = [lost, r, d]
    }
  mask[row * cols + four[from]!] = 0
  mask[row * cols + four[i]!] = 1
  holders[from]!--
  holders[i] = 1
}
