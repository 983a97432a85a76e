/**
 * Coordinates of the ancestors of positions in a chain of levels (the paths of a coordinate hierarchy), from the last
 * level up. Parents are computed arithmetically where levels are dense or of fixed width, and read from a column where
 * they are ragged, compressed or masked.
 */

import type { Column, Frame } from '../../columns/column-engine.ts'
import { coordinateAt } from '../../columns/stored-coordinates.ts'
import type { Level } from '../../columns/stored-level.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { formatOf } from '../../levels/index.ts'

/**
 * Computes coordinates by axis, and optionally positions, on each level above position `leafPosition` of a
 * chain's last level; new columns are appended to `allocated`.
 */
export function computeAncestorCoordinates<C extends Column>(
  frame: Frame<C>,
  tree: readonly Level<C>[],
  leafPosition: Expr,
  coordinates: Map<string, Expr>,
  allocated: C[],
  positions?: Map<string, Expr>,
): void {
  let position = leafPosition
  for (let k = tree.length - 1; k >= 0; k--) {
    const level = tree[k]!
    const { axis, indices } = level
    const parents = tree[k - 1]?.positions
    positions?.set(axis.name, position)
    if (parents === undefined) {
      coordinates.set(axis.name, indices ? coordinateAt(frame, level, position) : position)
      return
    }
    const { parent, coordinate } = formatOf(axis).ancestor(frame, level, position, parents, allocated)
    coordinates.set(axis.name, coordinate)
    position = parent
  }
}
