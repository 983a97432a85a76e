/** Segmented minima: the minimum over entries with the same keys. */
import { largest, nonNegative } from '../../../columns/key-columns.ts'
import { lexicographic } from '../../../columns/lexicographic-sort.ts'
import { borrow } from '../../../columns/scratch-buffers.ts'
import { fillRuns } from './count-distinct.ts'

/** For each entry, the minimum of `values` among entries with the same `by`. The entries keep their order. */
export function groupMinima(by: readonly Int32Array[], values: Int32Array): Int32Array {
  const n = values.length
  const out = borrow(n, 'entries')
  if (n === 0) return out
  const groups = by.length > 0 ? by.flatMap(nonNegative) : [new Int32Array(n)]
  const { order, columns } = lexicographic(groups, groups.map(largest))
  fillRuns(columns, order, out, (s, end) => {
    let minimum = values[order ? order[s]! : s]!
    for (let k = s + 1; k < end; k++) minimum = Math.min(minimum, values[order ? order[k]! : k]!)
    return minimum
  })
  return out
}
