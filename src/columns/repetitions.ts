/**
 * Equal tuples: the ordinal of each entry among its equals, and the first entry of each group. O(entries × columns).
 */
import { allocate, ascending, checkAllocation } from './allocate.ts'
import { changes, largest } from './key-columns.ts'
import { lexicographic } from './lexicographic-sort.ts'

/** The order in which equal entries are adjacent, stable (`null`: the given one), and the starts of their runs. */
function sortIntoRuns(columns: readonly Int32Array[]) {
  const { order, columns: sorted } = lexicographic(columns, columns.map(largest))
  return { order, begins: changes(sorted) }
}

/** The number of preceding entries equal to each one. */
export function repetitions(columns: readonly Int32Array[]): Int32Array {
  const { order, begins: runStarts } = sortIntoRuns(columns)
  const out = allocate(runStarts.length, 'entries')
  let ordinal = 0
  for (let s = 0; s < runStarts.length; s++) {
    ordinal = runStarts[s] === 1 ? 0 : ordinal + 1
    out[order ? order[s]! : s] = ordinal
  }
  return out
}

/** The entries without an equal predecessor, in order, and for each entry the index of its equal among these. */
export function uniqueTuples(columns: readonly Int32Array[]): {
  readonly entries: Int32Array
  readonly indexOf: Int32Array
} {
  const { order, begins: runStarts } = sortIntoRuns(columns)
  const first = allocate(runStarts.length, 'entries')
  let firstEntry = 0
  for (let s = 0; s < runStarts.length; s++) {
    const e = order ? order[s]! : s
    if (runStarts[s] === 1) firstEntry = e
    first[e] = firstEntry
  }
  const entries = ascending(runStarts.length, 'entries').filter((e) => first[e] === e)
  const indexOfEntry = allocate(runStarts.length, 'entries')
  for (let k = 0; k < entries.length; k++) indexOfEntry[entries[k]!] = k
  return { entries, indexOf: first.map((e) => indexOfEntry[e]!) }
}

/** Counting distinct numbers with a mark for each that has occurred. */
export class Occurrences {
  readonly #seen: Uint8Array

  /** Counts numbers from 0 to `size` - 1. */
  constructor(size: number) {
    checkAllocation(size, size, 'numbers')
    this.#seen = new Uint8Array(size)
  }

  /**
   * The number of distinct numbers of a column (`null`: those below `n`) that have not occurred before. O(elements).
   */
  add(column: Int32Array | null, n = column?.length ?? 0): number {
    const seen = this.#seen
    let newCount = 0
    for (let e = 0; e < n; e++) {
      const q = column ? column[e]! : e
      newCount += 1 - seen[q]!
      seen[q] = 1
    }
    return newCount
  }
}
