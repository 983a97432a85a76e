/** Positions of nonunique levels: new positions within runs of equal coordinates. */

import { type Column, ENTRY, type Frame } from '../../columns/column-engine.ts'
import type { Starts } from '../../columns/engine-operands.ts'
import { hasWidth, isNonunique } from '../../ir/coordinates/axis.ts'
import { type Expr, variable } from '../../ir/expressions/expr.ts'
import type { Dimension } from '../../levels/types.ts'

/** Each entry is the first of a run. */
const EACH: Starts = { keys: [variable(ENTRY)], cut: null }

/**
 * Additional starts of positions for each of the remaining `dimensions` of a tree, whose entries are in
 * order; `null`: none. Above a `sparse_fixed` child, a position covers as many child positions as the child
 * is wide (any number if the width is measured). Otherwise, it covers one tuple of all coordinates. With
 * `separateDuplicates`, equal tuples get separate positions.
 */
export function nonuniqueStarts<C extends Column>(
  frame: Frame<C>,
  dimensions: readonly Dimension[],
  parentPosition: Expr | null,
  separateDuplicates: boolean,
): readonly (Starts | null)[] {
  const out: (Starts | null)[] = dimensions.map(() => null)
  const keysThrough = (depth: number): Expr[] => [
    ...(parentPosition ? [parentPosition] : []),
    ...dimensions.slice(0, depth).map((d) => d.coordinate),
  ]
  const tuple = keysThrough(dimensions.length)
  // If another axis also starts positions within a run, widths are counted from those starts.
  const isOnlyRepeating = dimensions.filter((d) => isNonunique(d.axis)).length === 1
  // A child starts new positions within a run of its parent, so the deepest axis is processed first.
  for (let d = dimensions.length - 1; d >= 0; d--) {
    if (!isNonunique(dimensions[d]!.axis)) continue
    const child = dimensions[d + 1]
    if (!hasWidth(child?.axis)) {
      out[d] = separateDuplicates ? EACH : { keys: tuple, cut: null }
      continue
    }
    const keys = keysThrough(d + 1)
    const repeatedTuple = separateDuplicates && !isNonunique(child.axis) ? tuple : null
    if (child.width === null && !repeatedTuple) {
      out[d] = { keys, cut: null }
      continue
    }
    const childStarts = out[d + 1]
    if (child.width === 1 && isOnlyRepeating && (!repeatedTuple || d + 2 === dimensions.length)) {
      // A position has one child position, which starts with it and has rank 0.
      out[d] = repeatedTuple ? EACH : { keys: [...keys, child.coordinate], cut: null }
      const rank = `@rank ${child.axis.name}`
      frame.deferred.set(rank, () => frame.engine.filled(frame.n, 0, rank))
      continue
    }
    const cut = `@cut ${child.axis.name}`
    frame.engine.cuts(frame, cut, isOnlyRepeating && !repeatedTuple ? `@rank ${child.axis.name}` : null, {
      within: keys,
      starts: {
        keys: [...keys, child.coordinate, ...(childStarts?.keys ?? [])],
        cut: childStarts?.cut ?? null,
      },
      width: child.width ?? 0,
      tuple: repeatedTuple,
    })
    out[d] = { keys, cut: variable(cut) }
  }
  return out
}
