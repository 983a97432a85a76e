/** Coordinates in what comes with the data: segments of a list, members of a set. */

import { allocate } from '../../columns/allocate.ts'
import { largest } from '../../columns/keys.ts'
import { lexicographic } from '../../columns/lexicographic-sort.ts'

/** The k with `list[k] <= x < list[k + 1]`; -1 below the first boundary, the number of segments above the last. */
export function findSegments(list: Int32Array, of: Int32Array): Int32Array {
  const out = allocate(of.length, 'entries')
  const top = list.length - 1
  let k = -1
  for (let e = 0; e < of.length; e++) {
    const x = of[e]!
    // Neighbours are often in one segment.
    if (k >= 0 && k < top && list[k]! <= x && x < list[k + 1]!) {
      out[e] = k
      continue
    }
    let lo = 0
    let hi = list.length
    while (lo < hi) {
      const middle = (lo + hi) >>> 1
      if (list[middle]! <= x) lo = middle + 1
      else hi = middle
    }
    k = lo - 1
    out[e] = k
  }
  return out
}

/** 1 where the set has the coordinate; entries in any order. */
export function membership(set: readonly Int32Array[], columns: readonly Int32Array[]): Int32Array {
  const n = columns[0]?.length ?? 0
  const out = allocate(n, 'entries')
  const m = set[0]?.length ?? 0
  if (m === 0 || n === 0) return out
  const maxima = columns.map((c, k) => Math.max(largest(c), largest(set[k]!)))
  const have = lexicographic(set, maxima)
  const want = lexicographic(columns, maxima)
  let at = 0
  for (let s = 0; s < n; s++) {
    let d = 0
    while (at < m) {
      d = 0
      for (let k = 0; k < columns.length && d === 0; k++) d = have.columns[k]![at]! - want.columns[k]![s]!
      if (d >= 0) break
      at++
    }
    if (at === m) break
    if (d === 0) out[want.order ? want.order[s]! : s] = 1
  }
  return out
}
