/** TVW: tiles, of whose inputs, in the order in which they are stored, each output keeps the best two of every four. */
import { expectOptions } from '../../ast/expect-argument.ts'
import { best } from '../selection.ts'
import type { Pattern, Tile } from '../types.ts'
import { checkGranularity, kept } from './parameters.ts'
import { prunedTiles, type TileWiseOptions, tileBytes } from './tile-wise.ts'

const KEPT = 2
const OF = 4

/** @throws SptError `prune/parameter` */
export function tileVectorWise(options: TileWiseOptions): Pattern {
  expectOptions('tileVectorWise', options, ['granularity'])
  const { granularity } = options
  checkGranularity(granularity)
  return {
    name: 'tvw',
    text: `tvw(${granularity})`,
    least: 1 - KEPT / OF,
    async masks(given, sparsity) {
      const ofTiles = (s: number): number => Math.max(0, 1 - ((1 - s) * OF) / KEPT)
      const limits = given.limits.map(ofTiles)
      const tiles = await prunedTiles({ ...given, limits }, ofTiles(sparsity), granularity)
      const masks: Uint8Array[] = []
      for (const [k, { rows, cols }] of given.shapes.entries()) {
        const scores = await given.scores(k, 'two of four')
        const mask = new Uint8Array(rows * cols)
        for (const tile of tiles[k]!) keepTwoOfFour(scores, cols, tile, mask)
        masks.push(mask)
      }
      return { kept: masks, tiles }
    },
    // Half of the values, each with two bits that say which of the four it is.
    bytes: ({ shape: { valueBytes = 4 }, kept: mask, tiles }) =>
      tileBytes(tiles, 0) + kept(mask) * valueBytes + Math.ceil(kept(mask) / 4),
  }
}

function keepTwoOfFour(
  scores: Float32Array,
  cols: number,
  { outputs, inputs }: Tile,
  mask: Uint8Array,
): void {
  const values = new Float32Array(OF)
  const flags = new Uint8Array(OF)
  for (const r of outputs)
    for (let from = 0; from < inputs.length; from += OF) {
      const n = Math.min(OF, inputs.length - from)
      for (let i = 0; i < n; i++) values[i] = scores[r * cols + inputs[from + i]!]!
      best(values, n, KEPT, flags)
      for (let i = 0; i < n; i++) mask[r * cols + inputs[from + i]!] = flags[i]!
    }
}
