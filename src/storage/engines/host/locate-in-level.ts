/** The level function `locate`: positions of coordinates in an existing level. */
import { fail } from '../../../ast/diagnostics/diagnostic.ts'
import { allocate } from '../../../columns/allocate.ts'
import { bitsBelow } from '../../../columns/bits.ts'
import { isDense, isPadded } from '../../../ir/coordinates/axis.ts'
import { coordinatesOf, type Level, wordsOf } from '../../storage.ts'

/**
 * The position of coordinate `column[s]` under parent position `parents[s]` (`null`: the root's only segment), by
 * binary search, or linearly if the level is not ordered. @throws SptError `bind/absent-coordinate`
 */
export function locateInLevel(level: Level, parents: Int32Array | null, column: Int32Array): Int32Array {
  const n = column.length
  const out = allocate(n, 'entries')
  const coordinates = coordinatesOf(level)
  for (let s = 0; s < n; s++) {
    const p = parents ? parents[s]! : 0
    const c = column[s]!
    const q = findPosition(level, coordinates, p, c)
    if (q < 0)
      fail({
        code: 'bind/absent-coordinate',
        message: `axis ${level.axis.name} does not store the coordinate ${c} at position ${p} of its parent, which another tensor has there`,
        expected: 'a single structure for each axis',
        hint: 'declare a separate axis for the second tensor, or build the structure from the union of both',
      })
    out[s] = q
  }
  return out
}

/** The position of coordinate c under parent position p, or −1. */
function findPosition(level: Level, indices: Int32Array | null, p: number, c: number): number {
  const { axis, extent, indptr, mask, width } = level
  if (isDense(axis)) return c < extent ? p * extent + c : -1
  if (mask) {
    const firstWord = p * wordsOf(extent)
    if (((mask[firstWord + (c >>> 5)]! >>> (c & 31)) & 1) === 0) return -1
    return indptr![p]! + bitsBelow(mask, firstWord, c)
  }
  const lo = indptr ? indptr[p]! : p * (width ?? 0)
  const hi = indptr ? indptr[p + 1]! : lo + (width ?? 0)
  if (!indices) return lo + c < hi ? lo + c : -1
  let q = lo
  if ('ordered' in axis && axis.ordered && !isPadded(axis)) {
    let end = hi
    while (q < end) {
      const middle = (q + end) >>> 1
      if (indices[middle]! < c) q = middle + 1
      else end = middle
    }
  } else while (q < hi && indices[q] !== c) q++
  return q < hi && indices[q] === c ? q : -1
}
