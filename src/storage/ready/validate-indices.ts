/** Validation of one level's coordinates; each failure names the axis, the position and the value. */
import { fail, invariant } from '../../ast/diagnostic.ts'
import { hasWidth, type IndexedAxis, isPadded, padsWithLast } from '../../ir/axis.ts'
import { coordinatesOf, type Level, segment } from '../storage.ts'

/**
 * Checks range, order and uniqueness; padding is allowed on levels of fixed width only, at the end. @throws SptError
 * `bind/index-range`, `bind/unsorted`, `bind/duplicate`, `bind/padding`
 */
export function checkIndices(axis: IndexedAxis, level: Level, parents: number, padding?: number): void {
  const indices = coordinatesOf(level)!
  const { extent } = level
  const last = padsWithLast(axis)
  invariant(
    !isPadded(axis) || last || padding !== undefined,
    `what axis ${axis.name} is padded with is not known`,
  )
  const open = hasWidth(axis) && !isPadded(axis)
  const top = open ? extent : extent - 1
  for (let q = 0; q < indices.length; q++)
    if (indices[q]! < 0 || indices[q]! > top)
      fail({
        code: 'bind/index-range',
        message: `indices of axis ${axis.name} hold ${indices[q]} at position ${q}, and the extent is ${extent}`,
        expected: open ? `0 to ${extent - 1}, or ${extent} for padding` : `0 to ${extent - 1}`,
        hint:
          open && indices[q] === -1
            ? `padding is marked by the extent (${extent}) here, not by -1`
            : 'bind a larger size, or subtract 1 where indices count from 1',
      })
  const seen = !axis.ordered && axis.unique ? lastSegments(extent) : null
  for (let p = 0; p < parents; p++) {
    const [lo, end] = segment(level, p)
    let hi = end
    if (padding !== undefined) while (hi > lo && indices[hi - 1] === padding) hi--
    if (last) while (hi - 1 > lo && indices[hi - 1] === indices[hi - 2]) hi--
    for (let q = lo; q < hi; q++) {
      const c = indices[q]!
      const before = q > lo ? indices[q - 1]! : -1
      if (before === extent && c !== extent)
        fail({
          code: 'bind/padding',
          message: `indices of axis ${axis.name} hold ${c} at position ${q}, after padding`,
          expected: 'padding at the end of a segment',
          hint: 'move the padding behind the stored coordinates',
        })
      if (c === extent) continue
      if (axis.ordered && c < before)
        fail({
          code: 'bind/unsorted',
          message: `indices of axis ${axis.name} fall from ${before} to ${c} at position ${q}`,
          expected: 'ascending coordinates in each segment',
          hint: `stored(shape, arrays, values, dtype, { sort: true }) sorts them; or declare ${axis.name} unordered`,
        })
      if (axis.unique && (axis.ordered ? q > lo && c === before : seen!(c, p) === p))
        fail({
          code: 'bind/duplicate',
          message: `indices of axis ${axis.name} hold ${c} again at position ${q}`,
          expected: 'each coordinate once in a segment',
          hint: `stored(shape, arrays, values, dtype, { sum: true }) adds them up; or declare ${axis.name} nonunique`,
        })
    }
  }
}

/** A function that returns the segment in which a coordinate last occurred (−1: none), and records `segment`. */
function lastSegments(extent: number): (c: number, segment: number) => number {
  if (extent <= 2 ** 24) {
    const last = new Int32Array(extent).fill(-1)
    return (c, segment) => {
      const before = last[c]!
      last[c] = segment
      return before
    }
  }
  const last = new Map<number, number>()
  return (c, segment) => {
    const before = last.get(c) ?? -1
    last.set(c, segment)
    return before
  }
}
