/**
 * Equal tuples: the ordinal of each entry among its equals, and the first entry of each group. O(entries × columns).
 */
import { allocate, ascending } from './allocate.ts'
import { changes, largest } from './key-columns.ts'
import { lexicographic } from './lexicographic-sort.ts'

/** The order in which equal entries are adjacent, stable (`null`: the given one), and the starts of their runs. */
function inRuns(columns: readonly Int32Array[]) {
  const { order, columns: sorted } = lexicographic(columns, columns.map(largest))
  return { order, begins: changes(sorted) }
}

/** The number of preceding entries equal to each one. */
export function repetitions(columns: readonly Int32Array[]): Int32Array {
  const { order, begins } = inRuns(columns)
  const out = allocate(begins.length, 'entries')
  let times = 0
  for (let s = 0; s < begins.length; s++) {
    times = begins[s] === 1 ? 0 : times + 1
    out[order ? order[s]! : s] = times
  }
  return out
}

/** The entries without an equal predecessor, in order, and for each entry the index of its equal among these. */
export function identified(columns: readonly Int32Array[]): {
  readonly entries: Int32Array
  readonly of: Int32Array
} {
  const { order, begins } = inRuns(columns)
  const first = allocate(begins.length, 'entries')
  let own = 0
  for (let s = 0; s < begins.length; s++) {
    const e = order ? order[s]! : s
    if (begins[s] === 1) own = e
    first[e] = own
  }
  const entries = ascending(begins.length, 'entries').filter((e) => first[e] === e)
  const place = allocate(begins.length, 'entries')
  for (let k = 0; k < entries.length; k++) place[entries[k]!] = k
  return { entries, of: first.map((e) => place[e]!) }
}
