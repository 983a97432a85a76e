/** Counts, ranks and values of entries as columns; the entries keep their order. */
import { boundsOf } from '../../../analysis/integers/ranges.ts'
import { allocate, borrow, gather, release } from '../../../columns/allocate.ts'
import { ready } from '../../../columns/coroutines.ts'
import { type CountQuery, sortedPrefix } from '../../../columns/engine-operands.ts'
import { largest, nonNegative } from '../../../columns/key-columns.ts'
import { lexicographic } from '../../../columns/lexicographic-sort.ts'
import { type Expr, variable } from '../../../ir/expressions/expr.ts'
import { decoder, type EntryValues, newValues } from '../../tensor.ts'
import { countDistinct, fillRuns, rankDistinct, runsOf } from './count-distinct.ts'
import { columnOf, type F, type Host, valuesOf } from './map-reduce.ts'
import { gatherColumn } from './scatter.ts'

export const count: Host['count'] = (frame, q, distinct) => ready(countOrRank(frame, q, distinct, 'count'))

export const rank: Host['rank'] = (frame, q, distinct) => ready(countOrRank(frame, q, distinct, 'rank'))

function countOrRank(
  frame: F,
  { name, by, of }: CountQuery,
  distinct: boolean,
  kind: 'count' | 'rank',
): void {
  const exprs = [...by, ...of]
  withKeys(frame, exprs, (keys) => {
    const natural = exprs.map((e, k) => {
      const maximum = upperBound(frame, e)
      return (maximum === null ? nonNegative(keys[k]!) : [keys[k]!]).map((column) => ({ column, maximum }))
    })
    const columnsOf = (groupKeys: typeof natural) => groupKeys.flat().map((key) => key.column)
    const [groups, queried] = [columnsOf(natural.slice(0, by.length)), columnsOf(natural.slice(by.length))]
    const maxima = natural.flat().map((key) => key.maximum)
    const { n, sortedBy, monotone } = frame
    const isSwept = distinct && sortedPrefix(exprs, sortedBy, monotone, () => false) === exprs.length
    const isGrouped = frame.sortedPrefix(by) === by.length
    if (isSwept) frame.set(name, runsOf(groups, n, kind))
    else if (kind === 'rank') frame.set(name, rankDistinct(groups, queried, n, isGrouped, maxima))
    else frame.set(name, countDistinct(groups, queried, n, distinct))
  })
}

/** Upper bound of the values; `null` if they may be negative. */
function upperBound(frame: F, e: Expr): number | null {
  const range = boundsOf(e, (name) => frame.range(name))
  return range && range.lo >= 0 ? range.hi : null
}

export const minimum: Host['minimum'] = (frame, { name, by, of }) => {
  withKeys(frame, [...by, of], (keys) => {
    frame.set(name, groupMinima(keys.slice(0, -1), keys.at(-1)!))
  })
  return ready(undefined)
}

function withKeys(frame: F, exprs: readonly Expr[], use: (keys: readonly Int32Array[]) => void): void {
  const keys = exprs.map((e) => valuesOf(frame, e))
  use(keys)
  for (const [k, e] of exprs.entries()) if (!columnOf(frame, e)) release(keys[k]!)
}

export const takeValues: Host['takeValues'] = (frame, name, values) => {
  const entry = frame.entry as Int32Array | null
  frame.set(name, entry ? gatherColumn(values, entry) : values, entry !== null)
}

export const rankByMagnitude: Host['rankByMagnitude'] = (frame, { name, by }, { values, dims }) => {
  const entry = frame.entry as Int32Array | null
  const entryValues = values
    ? entry
      ? gatherColumn(values, entry)
      : values
    : new Float64Array(frame.n).fill(1)
  withKeys(frame, by, (keys) => {
    const columns = dims.map((d) => valuesOf(frame, variable(d.name)))
    frame.set(name, magnitudeRanks(keys, columns, entryValues as Float64Array))
  })
  return ready(undefined)
}

export const sumsOfEqual: Host['sumsOfEqual'] = (frame, values, dtype, dims, distinct) => {
  const columns = dims.map((d) => valuesOf(frame, variable(d.name)))
  return ready({ sums: sumDuplicates(columns, { values, dtype }, distinct), distinct })
}

// Segmented minima: the minimum over entries with the same keys.

/** For each entry, the minimum of `values` among entries with the same `by`. The entries keep their order. */
function groupMinima(by: readonly Int32Array[], values: Int32Array): Int32Array {
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

// Order of magnitude: ranks and sums of values, for queries.

/** The value at each entry's coordinate as float64: the sum over equal coordinates. */
function sumDuplicates(dims: readonly Int32Array[], values: EntryValues, distinct: boolean): Float64Array {
  const n = dims[0]?.length ?? 0
  const out = newValues('f64', n) as Float64Array
  const read = decoder(values.dtype)
  for (let e = 0; e < n; e++) out[e] = read ? read(values.values[e]!) : values.values[e]!
  if (distinct) return out
  const { order, columns } = lexicographic(dims, dims.map(largest))
  fillRuns(columns, order, out, (s, end) => {
    let sum = out[order ? order[s]! : s]!
    for (let k = s + 1; k < end; k++) sum += out[order ? order[k]! : k]!
    return sum
  })
  return out
}

/** Ranks by decreasing magnitude in groups of `by`, then by coordinate; equal coordinates share one. NaN is first. */
function magnitudeRanks(
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
