/** Element-wise (unstructured) sparsity, alone and in addition to tiles. */

import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectOptions, show } from '../../ast/diagnostics/expect-argument.ts'
import { countKept } from '../layers.ts'
import { elementsOf, layerCapacities, lowestElements, targetOf } from '../selection.ts'
import { maskOf } from '../tiles.ts'
import type { Pattern } from '../types.ts'
import { checkGranularity, elementBytes } from './parameters.ts'
import { prunedTiles, tileBytes } from './tile-wise.ts'

export interface TileElementWiseOptions {
  readonly granularity: number
  /** Share of all elements kept in addition to the tiles; usually 0.01 to 0.05. */
  readonly delta: number
}

/**
 * Tile-element-wise sparsity (TEW): tiles at a higher sparsity, plus the best single elements outside of these, as two disjoint
 * masks.
 * @throws SptError `prune/parameter`, `prune/delta`
 */
export function tileElementWise(options: TileElementWiseOptions): Pattern {
  expectOptions('tileElementWise', options, ['granularity', 'delta'])
  const { granularity, delta } = options
  checkGranularity(granularity)
  if (!(delta >= 0 && delta < 1))
    failWith('prune/delta', `delta cannot be ${show(delta)}`, {
      expected: 'a number of at least 0 and less than 1',
    })
  return {
    name: 'tew',
    text: `tew(${granularity}, ${delta})`,
    leastKept: granularity,
    async masks(layers, sparsity) {
      if (!(sparsity + delta < 1))
        failWith('prune/delta', `tiles at a sparsity of ${sparsity} + ${delta} hold nothing`, {
          expected: 'sparsity + delta below 1',
          hint: 'a smaller delta, or elementWise()',
        })
      const { shapes } = layers
      const tiles = await prunedTiles(layers, sparsity + delta, granularity)
      const masks = shapes.map(({ rows, cols }, k) => maskOf(tiles[k]!, rows, cols))
      const remainders = await lowestElements(layers, {
        target: targetOf(sparsity, elementsOf(shapes)),
        capacities: shapes.map((s) => s.rows * s.cols),
        excluded: masks,
      })
      // `rest` marks pruned elements; inverts the marks and removes elements in tiles.
      for (const [k, mask] of remainders.entries())
        for (let i = 0; i < mask.length; i++) mask[i] = 1 - mask[i]! - masks[k]![i]!
      return { kept: masks, rest: remainders, tiles }
    },
    bytes: ({ shape: { rows, valueBytes = 4 }, tiles, rest }) =>
      tileBytes(tiles, valueBytes) + (rest ? elementBytes(countKept(rest), rows, valueBytes) : 0),
  }
}

export function elementWise(): Pattern {
  return {
    name: 'ew',
    text: 'ew',
    leastKept: 1,
    async masks(layers, sparsity) {
      const target = targetOf(sparsity, elementsOf(layers.shapes))
      const masks = await lowestElements(layers, { target, capacities: layerCapacities(layers) })
      for (const mask of masks) for (let i = 0; i < mask.length; i++) mask[i] = 1 - mask[i]!
      return { kept: masks }
    },
    bytes: ({ shape: { rows, valueBytes = 4 }, kept: mask }) =>
      elementBytes(countKept(mask), rows, valueBytes),
  }
}
