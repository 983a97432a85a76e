/** Segmented minima: what entries with the same keys have least. */
import { changes, largest, nonNegative } from '../../../columns/key-columns.ts'
import { lexicographic } from '../../../columns/lexicographic-sort.ts'
import { borrow } from '../../../columns/scratch-buffers.ts'

/** For each entry the least `of` among those that agree with it in `by`. Entries stay as they stand. */
export function leastOf(by: readonly Int32Array[], of: Int32Array): Int32Array {
  const n = of.length
  const out = borrow(n, 'entries')
  if (n === 0) return out
  const groups = by.length > 0 ? by.map(nonNegative) : [new Int32Array(n)]
  const { order, columns } = lexicographic(groups, groups.map(largest))
  const group = changes(columns)
  for (let s = 0; s < n; ) {
    let least = of[order ? order[s]! : s]!
    let end = s + 1
    for (; end < n && group[end] === 0; end++) least = Math.min(least, of[order ? order[end]! : end]!)
    for (let k = s; k < end; k++) out[order ? order[k]! : k] = least
    s = end
  }
  return out
}
