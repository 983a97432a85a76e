/** Validation of one level's coordinates; each failure names the axis, the position and the value. */
import { fail, invariant } from '../ast/diagnostics/diagnostic.ts'
import { coordinatesOf, type Level, segment } from '../columns/stored-level.ts'
import { hasWidth, type IndexedAxis, isPadded, padsWithLast } from '../ir/coordinates/axis.ts'

/**
 * Checks range, order and uniqueness; padding is allowed on levels of fixed width only, at the end. @throws SptError
 * `bind/index-range`, `bind/unsorted`, `bind/duplicate`, `bind/padding`
 */
export function checkIndices(axis: IndexedAxis, level: Level, parents: number, padding?: number): void {
  const indices = coordinatesOf(level)!
  const { extent } = level
  const repeatsLast = padsWithLast(axis)
  invariant(
    !isPadded(axis) || repeatsLast || padding !== undefined,
    `what axis ${axis.name} is padded with is not known`,
  )
  const allowsPadding = hasWidth(axis) && !isPadded(axis)
  const maximum = allowsPadding ? extent : extent - 1
  for (let q = 0; q < indices.length; q++)
    if (indices[q]! < 0 || indices[q]! > maximum)
      fail({
        code: 'bind/index-range',
        message: `indices of axis ${axis.name} hold ${indices[q]} at position ${q}, and the extent is ${extent}`,
        expected: allowsPadding ? `0 to ${extent - 1}, or ${extent} for padding` : `0 to ${extent - 1}`,
        hint:
          allowsPadding && indices[q] === -1
            ? `padding is marked by the extent (${extent}) here, not by -1`
            : 'bind a larger size, or subtract 1 where indices count from 1',
      })
  const lastSegment = !axis.ordered && axis.unique ? lastSegmentTable(extent) : null
  for (let p = 0; p < parents; p++) {
    const [lo, end] = segment(level, p)
    let hi = end
    if (padding !== undefined) while (hi > lo && indices[hi - 1] === padding) hi--
    if (repeatsLast) while (hi - 1 > lo && indices[hi - 1] === indices[hi - 2]) hi--
    for (let q = lo; q < hi; q++) {
      const coordinate = indices[q]!
      const previous = q > lo ? indices[q - 1]! : -1
      if (previous === extent && coordinate !== extent)
        fail({
          code: 'bind/padding',
          message: `indices of axis ${axis.name} hold ${coordinate} at position ${q}, after padding`,
          expected: 'padding at the end of a segment',
          hint: 'move the padding behind the stored coordinates',
        })
      if (coordinate === extent) continue
      if (axis.ordered && coordinate < previous)
        fail({
          code: 'bind/unsorted',
          message: `indices of axis ${axis.name} fall from ${previous} to ${coordinate} at position ${q}`,
          expected: 'ascending coordinates in each segment',
          hint: `stored(shape, arrays, values, dtype, { sort: true }) sorts the indices; or declare ${axis.name} unordered`,
        })
      if (
        axis.unique &&
        (axis.ordered ? q > lo && coordinate === previous : lastSegment!(coordinate, p) === p)
      )
        fail({
          code: 'bind/duplicate',
          message: `indices of axis ${axis.name} hold ${coordinate} again at position ${q}`,
          expected: 'each coordinate once in a segment',
          hint: `stored(shape, arrays, values, dtype, { sum: true }) adds duplicates up; or declare ${axis.name} nonunique`,
        })
    }
  }
}

/** A function that returns the segment in which a coordinate last occurred (−1: none), and records `segment`. */
function lastSegmentTable(extent: number): (c: number, segment: number) => number {
  if (extent <= 2 ** 24) {
    const last = new Int32Array(extent).fill(-1)
    return (c, segment) => {
      const previous = last[c]!
      last[c] = segment
      return previous
    }
  }
  const last = new Map<number, number>()
  return (c, segment) => {
    const previous = last.get(c) ?? -1
    last.set(c, segment)
    return previous
  }
}
