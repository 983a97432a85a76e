/** Order of magnitude: ranks and sums of values, for queries. */

import { allocate, gather } from '../../../columns/allocate.ts'
import { differsFromPrevious, largest, nonNegative } from '../../../columns/key-columns.ts'
import { lexicographic } from '../../../columns/lexicographic-sort.ts'
import type { EntryValues } from '../../format-operands.ts'
import { decoder, newValues } from '../../values.ts'

/** The value at each entry's coordinate as float64: the sum over equal coordinates; 1 in a pattern. */
export function sumDuplicates(
  dims: readonly Int32Array[],
  values: EntryValues | null,
  distinct: boolean,
): Float64Array {
  const n = dims[0]?.length ?? 0
  const out = newValues('f64', n) as Float64Array
  if (!values) return out.fill(1)
  const read = decoder(values.dtype)
  for (let e = 0; e < n; e++) out[e] = read ? read(values.values[e]!) : values.values[e]!
  if (distinct) return out
  const { order, columns } = lexicographic(dims, dims.map(largest))
  for (let s = 0; s < n; ) {
    let end = s + 1
    while (end < n && !differsFromPrevious(columns, end)) end++
    if (end - s > 1) {
      let sum = 0
      for (let k = s; k < end; k++) sum += out[order ? order[k]! : k]!
      for (let k = s; k < end; k++) out[order ? order[k]! : k] = sum
    }
    s = end
  }
  return out
}

/**
 * The rank of each entry by decreasing magnitude among those with the same `by`; ties by coordinate, and equal
 * coordinates share a rank. NaN ranks above every number.
 */
export function magnitudeRanks(
  by: readonly Int32Array[],
  dims: readonly Int32Array[],
  values: Float64Array,
): Int32Array {
  const n = values.length
  const out = allocate(n, 'entries')
  if (n === 0) return out
  const byCoordinate = lexicographic(dims, dims.map(largest))
  const groups = by.flatMap(nonNegative).map((c) => (byCoordinate.order ? gather(c, byCoordinate.order) : c))
  const keys = [...groups, ...magnitudeKeys(values, byCoordinate.order)]
  const { order } = lexicographic(keys, keys.map(largest))
  let rank = 0
  let previous = -1
  for (let s = 0; s < n; s++) {
    const current = order ? order[s]! : s
    if (previous < 0 || differs(groups, current, previous)) rank = 0
    else if (differs(byCoordinate.columns, current, previous)) rank++
    previous = current
    out[byCoordinate.order ? byCoordinate.order[current]! : current] = rank
  }
  return out
}

const differs = (columns: readonly Int32Array[], a: number, b: number): boolean => {
  for (let k = 0; k < columns.length; k++) if (columns[k]![a] !== columns[k]![b]) return true
  return false
}

/** Keys that ascend as magnitudes descend: the bit patterns of positive float64 are ordered like their values. */
function magnitudeKeys(values: Float64Array, order: Int32Array | null): Int32Array[] {
  const n = values.length
  const high = allocate(n, 'entries')
  const low = allocate(n, 'entries')
  const last = allocate(n, 'entries')
  const float = new Float64Array(1)
  const words = new Uint32Array(float.buffer)
  const highWord = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 1 : 0
  for (let s = 0; s < n; s++) {
    float[0] = Math.abs(values[order ? order[s]! : s]!)
    high[s] = 0x7fffffff - words[highWord]!
    const complement = ~words[1 - highWord]!
    low[s] = complement >>> 1
    last[s] = complement & 1
  }
  return [high, low, last]
}
