/**
 * Coordinates of the ancestors of positions in a chain of levels (the paths of a coordinate hierarchy), from the last
 * level up. Parents are computed arithmetically where levels are dense or of fixed width, and read from a column where
 * they are ragged, compressed or masked.
 */

import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { segmentSize } from '../../ir/coordinates/axis.ts'
import { div, type Expr, load, mul, sub } from '../../ir/expressions/expr.ts'
import type { Column, Frame } from '../columns/column-engine.ts'
import type { Level } from '../storage.ts'
import { coordinateAt } from './stored-coordinates.ts'

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
    const parentLevel = tree[k - 1]
    const { axis, indptr, indices } = level
    const bindTable = (kind: string, column: C): string => {
      const name = `@${kind} ${axis.name}`
      frame.tables.set(name, column)
      return name
    }
    const levelPosition = position
    positions?.set(axis.name, levelPosition)
    if (!parentLevel) {
      coordinates.set(axis.name, indices ? coordinateAt(frame, level, levelPosition) : levelPosition)
      return
    }
    if (segmentSize(axis)) {
      const width = frame.bindSize(level.width ?? level.extent)
      position = div(levelPosition, width)
      coordinates.set(
        axis.name,
        indices ? coordinateAt(frame, level, levelPosition) : sub(levelPosition, mul(position, width)),
      )
      continue
    }
    invariant(indptr, `${axis.name} has segments`)
    const bits = level.mask ? frame.engine.bitsOf(level, parentLevel.positions) : null
    const parent = bits?.parents ?? frame.engine.parentsOf(indptr, parentLevel.positions, level.positions)
    allocated.push(parent, ...(bits ? [bits.coordinates] : []))
    position = load(bindTable('parents', parent), [levelPosition], 'i32')
    coordinates.set(
      axis.name,
      indices
        ? coordinateAt(frame, level, levelPosition)
        : bits
          ? load(bindTable('indices', bits.coordinates), [levelPosition], 'i32')
          : sub(levelPosition, load(bindTable('indptr', indptr), [position], 'i32')),
    )
  }
}
