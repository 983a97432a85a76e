/** Key columns of sorts: maximum, normalisation, and starts of runs. */
import { HIGHEST } from '../analysis/integers/interval.ts'
import { allocate } from './allocate.ts'

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

/** Adds the changes of a column to an array of marks. */
export function markChanges(out: Uint8Array, c: Int32Array): void {
  let previous = c[0]!
  for (let s = 1; s < c.length; s++) {
    const v = c[s]!
    if (v !== previous) out[s] = 1
    previous = v
  }
}

/** True if tuple s differs from the previous one. */
export function differsFromPrevious(columns: readonly Int32Array[], s: number): boolean {
  for (let k = 0; k < columns.length; k++) if (columns[k]![s] !== columns[k]![s - 1]) return true
  return false
}

/** True if tuples are strictly ascending, so that no two entries are equal. */
export function isAscending(columns: readonly Int32Array[]): boolean {
  const n = columns[0]?.length ?? 0
  const last = columns.length - 1
  if (columns.length === 2) return isAscendingPair(columns[0]!, columns[1]!)
  for (let e = 1; e < n; e++) {
    let k = 0
    while (k < last && columns[k]![e] === columns[k]![e - 1]) k++
    if (columns[k]![e]! <= columns[k]![e - 1]!) return false
  }
  return true
}

function isAscendingPair(a: Int32Array, b: Int32Array): boolean {
  for (let e = 1; e < a.length; e++) {
    const d = a[e]! - a[e - 1]!
    if (d < 0 || (d === 0 && b[e]! <= b[e - 1]!)) return false
  }
  return true
}
