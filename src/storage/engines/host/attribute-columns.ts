/** Reductions of groups of sorted entries, and values of entries, as columns; iteration of levels. */

import { ready } from '../../../ast/work.ts'
import { allocate, borrow, borrowExact } from '../../../columns/allocate.ts'
import { ENTRY, Frame } from '../../../columns/column-engine.ts'
import { changes, largest } from '../../../columns/key-columns.ts'
import { lexicographic } from '../../../columns/lexicographic-sort.ts'
import { type Expr, variable } from '../../../ir/expressions/expr.ts'
import { rewriteExpr } from '../../../ir/expressions/expr-tree.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'
import { MASK_BITS, wordsFor } from '../../../ir/values/packed-fields.ts'
import { decoder, type EntryValues, newValues as zeroed } from '../../tensor.ts'
import { type F, forEachChunk, type Host, newValues, valuesOf } from './map-reduce.ts'
import { gatherColumn } from './scatter.ts'

export const reduceGroups: Host['reduceGroups'] = (frame, name, by, of, reduction) => {
  const columns = of.map((e) => valuesOf(frame, e))
  const [values] = columns
  const changed = changes(reduction === 'tuples' ? columns : [])
  const out = borrow(frame.n, 'entries')
  fillRuns(
    by.map((e) => valuesOf(frame, e)),
    null,
    out,
    (lo, hi) => {
      if (reduction === 'entries') return hi - lo
      let total = reduction === 'tuples' ? 1 : values![lo]!
      if (reduction === 'tuples') for (let e = lo + 1; e < hi; e++) total += changed[e]!
      else for (let e = lo + 1; e < hi; e++) total = Math.min(total, values![e]!)
      return total
    },
  )
  frame.set(name, out)
}

const inFrame = (frame: F, values: TypedArray): TypedArray =>
  frame.entry ? gatherColumn(values, frame.entry as Int32Array) : values

export const takeValues: Host['takeValues'] = (frame, name, values) =>
  frame.set(name, inFrame(frame, values), frame.entry !== null)

export const magnitudes: Host['magnitudes'] = (frame, values) => {
  const keys = magnitudeKeys(inFrame(frame, values) as Float64Array)
  for (const [k, column] of keys.entries()) frame.set(`@magnitude ${k}`, column)
  return keys.length
}

export const sumsOfEqual: Host['sumsOfEqual'] = (frame, values, dtype, dims, distinct) => {
  const columns = dims.map((d) => valuesOf(frame, variable(d.name)))
  return ready({ sums: sumDuplicates(columns, { values, dtype }, distinct), distinct })
}

/** Writes one number to the entries of every run of equal `by`; `value` receives the run's range in sorted order. */
function fillRuns(
  by: readonly Int32Array[],
  order: Int32Array | null,
  out: Int32Array | Float64Array,
  value: (start: number, end: number) => number,
): void {
  const n = out.length
  const group = by.length > 0 ? changes(by) : new Uint8Array(n)
  for (let s = 0; s < n; ) {
    let end = s + 1
    while (end < n && group[end] === 0) end++
    const x = value(s, end)
    if (order) for (let k = s; k < end; k++) out[order[k]!] = x
    else out.fill(x, s, end)
    s = end
  }
}

/** The value at each entry's coordinate as float64: the sum over equal coordinates. */
function sumDuplicates(dims: readonly Int32Array[], values: EntryValues, distinct: boolean): Float64Array {
  const n = dims[0]?.length ?? 0
  const out = zeroed('f64', n) as Float64Array
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

/** Keys that ascend as magnitudes descend: the bit patterns of positive float64 are ordered like their values. */
function magnitudeKeys(values: Float64Array): Int32Array[] {
  const n = values.length
  const high = allocate(n, 'entries')
  const low = allocate(n, 'entries')
  const last = allocate(n, 'entries')
  const float = new Float64Array(1)
  const words = new Uint32Array(float.buffer)
  const highWord = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 1 : 0
  for (let s = 0; s < n; s++) {
    float[0] = Math.abs(values[s]!)
    high[s] = 0x7fffffff - words[highWord]!
    const complement = ~words[1 - highWord]!
    low[s] = complement >>> 1
    last[s] = complement & 1
  }
  return [high, low, last]
}

// Level iteration: parents of positions, set bits of masks, stream compaction.

export const parentsOf: Host['parentsOf'] = (indptr, parents, positions) => {
  const out = borrowExact(positions, 'positions')
  for (let p = 0; p < parents; p++) {
    const end = indptr[p + 1]!
    for (let q = indptr[p]!; q < end; q++) out[q] = p
  }
  return out
}

export const bitsOf: Host['bitsOf'] = ({ mask, positions, extent }, parents) => {
  const words = wordsFor(extent, MASK_BITS)
  const out = {
    parents: borrowExact(positions, 'positions'),
    coordinates: borrowExact(positions, 'positions'),
  }
  let q = 0
  for (let p = 0; p < parents; p++)
    for (let w = 0; w < words; w++)
      for (let word = mask![p * words + w]!; word !== 0; word &= word - 1) {
        out.parents[q] = p
        out.coordinates[q++] = w * 32 + 31 - Math.clz32(word & -word)
      }
  return out
}

export const compact: Host['compact'] = (positions, condition, columns, sizes) => {
  const entry = selectPositions(positions, condition)
  const out = new Frame<TypedArray>(positions.engine, entry.length, sizes)
  // Expressions over all positions, evaluated at the kept ones.
  const selected = positions.sibling(entry.length)
  selected.set('@position', entry, false)
  for (const [name, e] of columns) {
    const atPosition = rewriteExpr(e, (x) =>
      x.kind === 'var' && x.name === ENTRY ? variable('@position') : undefined,
    )
    out.set(name, newValues(selected, atPosition))
  }
  out.setEntry(entry)
  return ready(out)
}

function selectPositions(positions: F, condition: Expr): Int32Array {
  const out = allocate(positions.n, 'positions')
  let count = 0
  forEachChunk(positions, [condition], ([holds], lo, n) => {
    for (let k = 0; k < n; k++) {
      out[count] = lo + k
      count += holds![k] !== 0 ? 1 : 0
    }
  })
  return out.slice(0, count)
}
