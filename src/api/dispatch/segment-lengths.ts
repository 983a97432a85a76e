/** Lengths of the segments of an axis, from offsets or sorted coordinates. */
import { allocate } from '../../columns/allocate.ts'
import type { AxisStatistic } from '../../elaborate/index.ts'

/** Statistics of segment lengths, in elements. */
export type Lengths = Readonly<Record<AxisStatistic, number>>

/** Statistics of the segments between the offsets `indptr`; `null` for invalid offsets. Linear in the number of segments. */
export function lengthsOf(indptr: ArrayLike<number>): Lengths | null {
  const segments = indptr.length - 1
  if (segments < 0 || indptr[0] !== 0) return null
  let longest = 0
  let shortest = segments > 0 ? Number.POSITIVE_INFINITY : 0
  let empty = 0
  for (let s = 0; s < segments; s++) {
    const length = indptr[s + 1]! - indptr[s]!
    if (length < 0) return null
    if (length > longest) longest = length
    if (length < shortest) shortest = length
    if (length === 0) empty++
  }
  const count = indptr[segments]!
  return { count, longest, shortest, empty, segments, mean: segments > 0 ? count / segments : 0 }
}

/** Offsets of the distinct columns of each row; undefined unless rows and columns are sorted. */
export function offsetsOf(rows: Int32Array, columns: Int32Array, count: number): Int32Array | undefined {
  const offsets = allocate(count + 1, 'offsets')
  let [row, column, positions] = [0, -1, 0]
  for (let e = 0; e < rows.length; e++) {
    const r = rows[e]!
    const c = columns[e]!
    if (r < row || r >= count || (r === row && c < column)) return undefined
    if (r > row) {
      for (; row < r; row++) offsets[row + 1] = positions
      column = -1
    }
    if (c !== column) positions++
    column = c
  }
  for (; row < count; row++) offsets[row + 1] = positions
  return offsets
}
