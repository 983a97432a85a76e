/** Key columns of sorts: maximum, normalisation, and starts of runs. */
import { HIGHEST } from '../analysis/integers/interval.ts'
import { allocate, ascending, checkAllocation, gather } from './allocate.ts'
import { lexicographic } from './lexicographic-sort.ts'

/** The maximum, at least 0. */
export function largest(column: Int32Array): number {
  let max = 0
  for (let e = 0; e < column.length; e++) if (column[e]! > max) max = column[e]!
  return max
}

/**
 * Non-negative keys in the same order: the column itself, or a copy shifted to start at 0. If the range exceeds 31
 * bits, two columns: the sign, and the other 31 bits.
 */
export function nonNegative(column: Int32Array): readonly Int32Array[] {
  let min = 0
  for (let e = 0; e < column.length; e++) if (column[e]! < min) min = column[e]!
  if (min === 0) return [column]
  if (largest(column) - min > HIGHEST)
    return [mapColumn(column, (v) => (v < 0 ? 0 : 1)), mapColumn(column, (v) => v & HIGHEST)]
  return [mapColumn(column, (v) => v - min)]
}

function mapColumn(column: Int32Array, f: (v: number) => number): Int32Array {
  const out = allocate(column.length, 'entries')
  for (let e = 0; e < column.length; e++) out[e] = f(column[e]!)
  return out
}

/** 1 where a tuple differs from the previous one, and at the first. */
export function changes(columns: readonly Int32Array[]): Uint8Array {
  const n = columns[0]?.length ?? 0
  const out = new Uint8Array(n)
  if (n > 0) out[0] = 1
  for (const c of columns) markChanges(out, c)
  return out
}

export function markChanges(out: Uint8Array, c: Int32Array): void {
  let previous = c[0]!
  for (let s = 1; s < c.length; s++) {
    const v = c[s]!
    if (v !== previous) out[s] = 1
    previous = v
  }
}

/** True if two columns are equal, or both absent. */
export function sameColumn(x: Int32Array | null | undefined, y: Int32Array | null | undefined): boolean {
  if (x === y) return true
  if (!x || !y || x.length !== y.length) return false
  for (let e = 0; e < x.length; e++) if (x[e] !== y[e]) return false
  return true
}

// Equal tuples: the ordinal of each entry among its equals, and the first entry of each group. O(entries ×
// columns).

/** The order in which equal entries are adjacent, stable (`null`: the given one), and the starts of their runs. */
function sortIntoRuns(columns: readonly Int32Array[]) {
  const { order, columns: sorted } = lexicographic(columns, columns.map(largest))
  return { order, columns: sorted, begins: changes(sorted) }
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

/** The distinct tuples in lexicographic order (all tuples if `apart`), and the index of each entry's tuple among these. */
export function rankedTuples(
  columns: readonly Int32Array[],
  apart = false,
): { readonly columns: readonly Int32Array[]; readonly rank: Int32Array } {
  const { order, columns: sorted, begins } = sortIntoRuns(columns)
  const rank = allocate(begins.length, 'coordinates')
  let count = 0
  for (let s = 0; s < rank.length; s++) {
    count += apart ? 1 : begins[s]!
    rank[order ? order[s]! : s] = count - 1
  }
  if (count === rank.length) return { columns: sorted, rank }
  const kept = ascending(rank.length, 'coordinates').filter((s) => begins[s] === 1)
  return { columns: sorted.map((c) => gather(c, kept)), rank }
}

/** Counting distinct numbers with a mark for each that has occurred. */
export class Occurrences {
  readonly #seen: Uint8Array

  constructor(size: number) {
    checkAllocation(size, size, 'numbers')
    this.#seen = new Uint8Array(size)
  }

  /** How many distinct numbers of a column (`null`: those below `n`) have not occurred before. */
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
