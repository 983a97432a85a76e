/**
 * Coordinates of the ancestors of positions in a chain of levels (the paths of a coordinate hierarchy), from the last
 * level up. Parents are computed arithmetically where levels are dense or of fixed width, and read from a column where
 * they are ragged, compressed or masked.
 */

import { invariant } from '../ast/diagnostic.ts'
import { segmentSize } from '../ir/axis.ts'
import { div, type Expr, load, mul, sub } from '../ir/expr.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Level } from './storage.ts'
import { coordinateAt } from './stored-coordinates.ts'

/**
 * Computes coordinates by axis, and optionally positions, on each level above position `at` of a chain's last level;
 * new columns are appended to `made`.
 */
export function ancestorCoordinates<C extends Column>(
  frame: Frame<C>,
  tree: readonly Level<C>[],
  at: Expr,
  coordinates: Map<string, Expr>,
  made: C[],
  positions?: Map<string, Expr>,
): void {
  let position = at
  for (let k = tree.length - 1; k >= 0; k--) {
    const level = tree[k]!
    const above = tree[k - 1]
    const { axis, indptr, indices } = level
    const table = (what: string, column: C): string => {
      const name = `@${what} ${axis.name}`
      frame.tables.set(name, column)
      return name
    }
    const own = position
    positions?.set(axis.name, own)
    if (!above) {
      coordinates.set(axis.name, indices ? coordinateAt(frame, level, own) : own)
      return
    }
    if (segmentSize(axis)) {
      const width = frame.sized(level.width ?? level.extent)
      position = div(own, width)
      coordinates.set(axis.name, indices ? coordinateAt(frame, level, own) : sub(own, mul(position, width)))
      continue
    }
    invariant(indptr, `${axis.name} has segments`)
    const bits = level.mask ? frame.engine.bitsOf(level, above.positions) : null
    const parent = bits?.parents ?? frame.engine.parentsOf(indptr, above.positions, level.positions)
    made.push(parent, ...(bits ? [bits.coordinates] : []))
    position = load(table('parents', parent), [own], 'i32')
    coordinates.set(
      axis.name,
      indices
        ? coordinateAt(frame, level, own)
        : bits
          ? load(table('indices', bits.coordinates), [own], 'i32')
          : sub(own, load(table('indptr', indptr), [position], 'i32')),
    )
  }
}
