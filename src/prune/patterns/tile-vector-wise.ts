/**
 * Tile-vector-wise sparsity (TVW): tiles with 2:4 sparsity. Each output keeps the best two of every four inputs of its tile.
 * Groups of four are counted over stored inputs, so each input of a tile must be kept by at least one output.
 */

import { expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import { countKept } from '../layers.ts'
import { best } from '../selection.ts'
import type { Pattern, Tile } from '../types.ts'
import { checkParameter } from './parameters.ts'
import { prunedTiles, type TileWiseOptions, tileBytes } from './tile-wise.ts'

const KEPT_OF_GROUP = 2
const GROUP = 4
const MIN_OUTPUTS = 2

/** @throws SptError `prune/parameter` */
export function tileVectorWise(options: TileWiseOptions): Pattern {
  expectOptions('tileVectorWise', options, ['granularity'])
  const { granularity } = options
  // With one output, 2:4 sparsity would leave inputs that no output keeps.
  checkParameter('granularity', granularity, MIN_OUTPUTS)
  return {
    name: 'tvw',
    text: `tvw(${granularity})`,
    minSparsity: 1 - KEPT_OF_GROUP / GROUP,
    leastKept: 1,
    async masks(layers, sparsity) {
      const tileSparsity = (s: number): number => Math.max(0, 1 - ((1 - s) * GROUP) / KEPT_OF_GROUP)
      const limits = layers.limits.map(tileSparsity)
      const tiles = await prunedTiles({ ...layers, limits }, tileSparsity(sparsity), granularity, MIN_OUTPUTS)
      const masks: Uint8Array[] = []
      for (const [k, { rows, cols }] of layers.shapes.entries()) {
        const scores = await layers.scores(k, 'two of four')
        const mask = new Uint8Array(rows * cols)
        tiles[k] = tiles[k]!.map((tile) =>
          tile.outputs.length === 1 ? keepBestTwo(scores, cols, tile) : tile,
        )
        for (const tile of tiles[k]) keepTwoOfFour(scores, cols, tile, mask)
        masks.push(mask)
      }
      return { kept: masks, tiles }
    },
    // Half of the values, each with two bits for its index in the group of four.
    bytes: ({ shape: { valueBytes = 4 }, kept: mask, tiles }) =>
      tileBytes(tiles, 0) + countKept(mask) * valueBytes + Math.ceil(countKept(mask) / 4),
  }
}

/** Restricts a last tile of one output to its best two inputs. */
function keepBestTwo(scores: Float32Array, cols: number, { outputs, inputs }: Tile): Tile {
  const flags = new Uint8Array(inputs.length)
  const values = Float32Array.from(inputs, (c) => scores[outputs[0]! * cols + c]!)
  best(values, inputs.length, KEPT_OF_GROUP, flags)
  return { outputs, inputs: inputs.filter((_, i) => flags[i] === 1) }
}

function keepTwoOfFour(
  scores: Float32Array,
  cols: number,
  { outputs, inputs }: Tile,
  mask: Uint8Array,
): void {
  const values = new Float32Array(GROUP)
  const flags = new Uint8Array(GROUP)
  for (let from = 0; from < inputs.length; from += GROUP) {
    const group = inputs.subarray(from, from + GROUP)
    const holders = new Int32Array(group.length)
    for (const r of outputs) {
      for (let i = 0; i < group.length; i++) values[i] = scores[r * cols + group[i]!]!
      best(values, group.length, KEPT_OF_GROUP, flags)
      for (let i = 0; i < group.length; i++) {
        mask[r * cols + group[i]!] = flags[i]!
        holders[i]! += flags[i]!
      }
    }
    for (let i = 0; i < group.length; i++)
      if (holders[i] === 0) giveSlot(i, { scores, cols, outputs, group, holders }, mask)
  }
}

interface GroupOfFour {
  readonly scores: Float32Array
  readonly cols: number
  readonly outputs: Int32Array
  readonly group: Int32Array
  /** Number of outputs that keep each element of the group of four. */
  readonly holders: Int32Array
}

/**
 * Assigns an input that no output keeps to the output with the smallest loss of score, in place of an input that another output
 * keeps, too. Such an input exists, because two outputs have four slots for three other inputs.
 */
function giveSlot(i: number, { scores, cols, outputs, group, holders }: GroupOfFour, mask: Uint8Array): void {
  let minLoss = 0
  let [row, donor] = [-1, 0]
  for (const r of outputs)
    for (let d = 0; d < group.length; d++) {
      if (holders[d]! < 2 || mask[r * cols + group[d]!] === 0) continue
      const [current, candidate] = [scores[r * cols + group[d]!]!, scores[r * cols + group[i]!]!]
      // Scores may be infinite (products with gradients), and their difference NaN.
      const loss = current === candidate ? 0 : current - candidate
      if (row < 0 || loss < minLoss) [minLoss, row, donor] = [loss, r, d]
    }
  mask[row * cols + group[donor]!] = 0
  mask[row * cols + group[i]!] = 1
  holders[donor]!--
  holders[i] = 1
}
