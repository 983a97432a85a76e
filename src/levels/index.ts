/** The level formats by axis kind, and the functions that are common to all. */

import { failWith } from '../ast/diagnostics/diagnostic.ts'
import type { LevelKind } from '../ast/nodes/axis-kinds.ts'
import { MAX_POSITIONS, rejectCount } from '../columns/allocate.ts'
import type { Column, Frame } from '../columns/column-engine.ts'
import { coordinatesOf, type Level, segment } from '../columns/stored-level.ts'
import type { AxisOfKind, StoredAxis } from '../ir/coordinates/axis.ts'
import { arraysOfAxis, indexBits, isDense, parentOf } from '../ir/coordinates/axis.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { checkFields } from '../ir/values/packed-fields.ts'
import type { FixedLevel, IndexArrays } from './bind.ts'
import { BITMAP } from './bitmap.ts'
import { COMPRESSED } from './compressed.ts'
import { DENSE } from './dense.ts'
import { FIXED_WIDTH } from './fixed-width.ts'
import { coordinateAt } from './indices.ts'
import { RAGGED } from './ragged.ts'
import { RUN } from './run.ts'
import { SINGLETON } from './singleton.ts'
import { type LevelFormat, makeLevel } from './types.ts'

const FORMATS: { readonly [K in LevelKind]: LevelFormat<AxisOfKind<K>> } = {
  dense_fixed: DENSE,
  dense_variable: RAGGED,
  run: RUN,
  sparse_fixed: FIXED_WIDTH,
  sparse_variable: COMPRESSED,
  singleton: SINGLETON,
  bitmap: BITMAP,
}

export const formatOf = (axis: StoredAxis): LevelFormat => FORMATS[axis.kind] as LevelFormat

/** A level over validated arrays; `parentPadding` marks the parent's padding positions. */
export function bindLevel(
  axis: StoredAxis,
  extent: number,
  parent: Level | null,
  arrays: IndexArrays,
  fixed: FixedLevel,
  parentPadding: Uint8Array | null,
): Level {
  const bits = indexBits(axis)
  checkFields(axis, extent)
  const level = formatOf(axis).bind(axis, {
    extent,
    parents: parent?.positions ?? 1,
    arrays,
    fixed,
    bits,
    make: (positions, own = {}) => {
      if (positions > MAX_POSITIONS) rejectCount(positions, `positions of axis ${axis.name}`)
      const given = Object.fromEntries(arraysOfAxis(axis).map((array) => [array, arrays[array] ?? null]))
      return makeLevel({ axis, extent }, positions, Object.assign(given, own, bits < 32 ? { bits } : {}))
    },
  })
  // Dense levels have positions under padding, too.
  if (!isDense(axis)) checkUnderPadding(level, parentPadding)
  return level
}

/** Descendants of padding are padding: their values would belong to no coordinate. @throws `bind/padding` */
function checkUnderPadding(level: Level, parentPadding: Uint8Array | null): void {
  if (!parentPadding) return
  const coordinates = coordinatesOf(level)
  for (let p = 0; p < parentPadding.length; p++) {
    if (parentPadding[p] === 0) continue
    const [lo, hi] = segment(level, p)
    for (let q = lo; q < hi; q++)
      if (coordinates?.[q] !== level.extent || level.width === null)
        failWith(
          'bind/padding',
          `axis ${level.axis.name} stores position ${q} under the padding at position ${p} of ${parentOf(level.axis)}`,
          { expected: 'an empty segment, or padding', hint: 'a padded position has no children' },
        )
  }
}

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
