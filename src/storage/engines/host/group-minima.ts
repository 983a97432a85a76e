/** Segmented minima: the minimum over entries with the same keys. */
import { largest, nonNegative } from '../../../columns/key-columns.ts'
import { lexicographic } from '../../../columns/lexicographic-sort.ts'
import { borrow } from '../../../columns/scratch-buffers.ts'
import { fillRuns } from './count-distinct.ts'

/** For each entry the least `of` among those that agree with it in `by`. The entries keep their order. */
export function leastOf(by: readonly Int32Array[], of: Int32Array): Int32Array {
  const n = of.length
  const out = borrow(n, 'entries')
  if (n === 0) return out
  const groups = by.length > 0 ? by.flatMap(nonNegative) : [new Int32Array(n)]
  const { order, columns } = lexicographic(groups, groups.map(largest))
  fillRuns(columns, order, out, (s, end) => {
    let least = of[order ? order[s]! : s]!
    for (let k = s + 1; k < end; k++) least = Math.min(least, of[order ? order[k]! : k]!)
    return least
  })
  return out
}
