/** Equal tuples: which of its equals each entry is, and the entries that are the first of theirs. O(entries × columns). */
import { allocate, ascending } from './allocate.ts'
import { changes, largest } from './key-columns.ts'
import { lexicographic } from './lexicographic-sort.ts'

/** Entries with equal ones together, in input order (`null`: as they are), and where a tuple differs from the one before. */
function inRuns(columns: readonly Int32Array[]) {
  const { order, columns: sorted } = lexicographic(columns, columns.map(largest))
  return { order, begins: changes(sorted) }
}

/** How many entries before each one are equal to it. */
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

/** The entries that equal none before them, in their order, and for each entry the place of its equal among these. */
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
