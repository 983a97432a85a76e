/** Padding positions of a tree: those without a coordinate, and their descendants. */

import { coordinatesOf, type Level, segment } from '../../columns/stored-level.ts'
import { hasWidth, isPadded } from '../../ir/coordinates/axis.ts'
import type { Storage } from '../storage.ts'

/** For each level of a chain, 1 at padding positions; `null` if there is none. O(positions). */
export function paddedPositions(chain: readonly Level[]): readonly (Uint8Array | null)[] {
  let parentPadding: Uint8Array | null = null
  return chain.map((level) => {
    parentPadding = markPadding(level, parentPadding)
    return parentPadding
  })
}

/** The levels of a storage's tree, root first. */
export const chainOf = (storage: Storage, tree: readonly string[]): readonly Level[] =>
  tree.map((name) => storage.levels.get(name)!)

/** The padding positions of one level, given those of its parent; `null` if there are none. */
export function markPadding(level: Level, parentPadding: Uint8Array | null): Uint8Array | null {
  const { positions, extent } = level
  if (!parentPadding && !hasWidth(level.axis)) return null
  const out = new Uint8Array(positions)
  let hasPadding = false
  if (hasWidth(level.axis)) {
    const coordinates = coordinatesOf(level)!
    if (isPadded(level.axis)) hasPadding = markRepeated(level, coordinates, out)
    else
      for (let q = 0; q < positions; q++)
        if (coordinates[q] === extent) {
          out[q] = 1
          hasPadding = true
        }
  }
  if (parentPadding)
    for (let p = 0; p < parentPadding.length; p++) {
      if (parentPadding[p] === 0) continue
      const [lo, hi] = segment(level, p)
      if (hi === lo) continue
      out.fill(1, lo, hi)
      hasPadding = true
    }
  return hasPadding ? out : null
}

/**
 * Marks padding that stores a coordinate: positions after an element whose coordinate does not ascend. Two
 * cases are mistaken for elements: the first position of an empty segment, and padding greater than the
 * elements. Returns true if any position was marked.
 */
function markRepeated({ positions, width }: Level, coordinates: Int32Array, out: Uint8Array): boolean {
  const w = width ?? 0
  let hasPadding = false
  for (let lo = 0; w > 0 && lo < positions; lo += w)
    for (let q = lo + 1; q < lo + w; q++)
      if (out[q - 1] === 1 || coordinates[q]! <= coordinates[q - 1]!) {
        out[q] = 1
        hasPadding = true
      }
  return hasPadding
}
