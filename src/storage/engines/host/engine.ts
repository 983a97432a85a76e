/** The operations of conversion on typed arrays; entries are not sorted if ranks can be computed without sorting. */

import { ready } from '../../../ast/work.ts'
import { allocate, borrowExact, rejectCount, release } from '../../../columns/allocate.ts'
import type { OpenSortKey } from '../../../columns/engine-operands.ts'
import { largest, nonNegative } from '../../../columns/key-columns.ts'
import { isSorted, lexicographic } from '../../../columns/lexicographic-sort.ts'
import { variable } from '../../../ir/expressions/expr.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import { decoder, newValues as valuesArray } from '../../tensor.ts'
import * as queries from './attribute-columns.ts'
import { fits } from './extremes.ts'
import * as scans from './level-scans.ts'
import type { F, Host } from './map-reduce.ts'
import { bounds, columnOf, computeChecked, findFirst, newValues, valuesAt, valuesOf } from './map-reduce.ts'
import { gatherColumn, partition, scatterCopy, storeValues } from './scatter.ts'
import { rankSegments } from './segment-ranks.ts'

type Ints = Int32Array

export const HOST: Host = {
  ...scans,
  ...queries,
  bounds,
  computeChecked,
  findFirst,
  fits,
  partition,
  storeValues,
  valuesAt,
  upload: (values) => ready(values),
  // The array belongs to the caller.
  unload() {},
  release(...columns) {
    for (const c of columns) if (c instanceof Int32Array) release(c)
  },
  empty: (length, label) => allocate(length, label),
  filled(length, value, label) {
    const out = allocate(length, label)
    return value === 0 ? out : out.fill(value)
  },
  concatenate,
  rejectCount: (count, what) => rejectCount(count, what),
  *runConcurrently(work) {
    for (const w of work) yield* w
  },
  flush: () => ready(undefined),
  compute: (frame, name, e) => frame.set(name, newValues(frame, e)),
  materialize(frame, name, e, defer = false) {
    if (columnOf(frame, e)) return e
    const evaluate = () => newValues(frame, e, `the coordinate on ${name.replace(/^@(at )?/, '')}`)
    if (defer) frame.deferred.set(name, evaluate)
    else frame.set(name, evaluate())
    return variable(name)
  },
  fillsTables: true,
  bindNumbers(frame, name, values, dtype) {
    const read = decoder(dtype)
    frame.tables.set(name, read ? Float32Array.from(values, read) : values)
    return read ? 'f32' : dtype
  },
  isAscending(frame, dims) {
    const columns = dims.map((d) => valuesOf(frame, variable(d.name)))
    if (!isSorted(columns, 0, true)) return false
    frame.sortedBy = dims.map((d) => variable(d.name))
    return true
  },
  order: (frame, keys) => ready(sortFrame(frame, keys)),
  restore(frame, ordered, name, e) {
    if (ordered === frame) return e
    const out = borrowExact(frame.n, 'entries')
    scatterCopy(out, valuesOf(ordered, e), ordered.entry as Ints)
    ordered.release()
    frame.set(name, out)
    return variable(name)
  },
  scatter: (frame, to, at, value) => scatterCopy(to as Ints, valuesOf(frame, value), valuesOf(frame, at)),
  rankInSegments(frame, name, { parent, parents, coordinate, extent }, keys) {
    const columns = keys.map((k) => valuesOf(frame, k.expr))
    if (isOrdered(frame, keys, columns)) return null
    const parentColumn = parent && valuesOf(frame, parent)
    const grouped = parent === null || frame.sortedPrefix([parent]) === 1
    const ranks = rankSegments(parentColumn, valuesOf(frame, coordinate), extent, parents, grouped)
    if (!ranks) return null
    frame.set(name, ranks.rank)
    return ranks.counts
  },
}

function isOrdered(frame: F, keys: readonly OpenSortKey[], columns: readonly Ints[]): boolean {
  const exprs = keys.map((k) => k.expr)
  if (frame.sortedPrefix(exprs) === keys.length) return true
  if (!isSorted(columns)) return false
  frame.sortedBy = exprs
  return true
}

/** The frame itself, or a frame of its entries in order whose `entry` refers to `frame`. */
function sortFrame(frame: F, keys: readonly OpenSortKey[]): F {
  const columns = keys.map((k) => valuesOf(frame, k.expr))
  if (isOrdered(frame, keys, columns)) return frame
  const keyColumns = columns.map((c, k) => (keys[k]!.extent === undefined ? nonNegative(c) : [c]))
  const maxima = keys.map(({ extent }, k) =>
    extent === undefined ? keyColumns[k]!.map(largest) : [Math.max(0, extent - 1)],
  )
  const { order, columns: sorted } = lexicographic(keyColumns.flat(), maxima.flat())
  if (!order) return frame
  const out = frame.sibling(frame.n)
  for (const name of frame.names()) out.deferred.set(name, () => gatherColumn(frame.column(name)!, order))
  for (const [k, { expr }] of keys.entries()) {
    const index = expr.kind === 'var' ? keyColumns.flat().indexOf(columns[k]!) : -1
    if (expr.kind !== 'var' || index < 0) continue
    out.set(expr.name, sorted[index]!)
  }
  out.setEntry(order)
  out.sortedBy = keys.map((k) => k.expr)
  return out
}

function concatenate(
  parts: readonly { readonly column: TypedArray; readonly entry: TypedArray | null; readonly n: number }[],
  dtype: Dtype,
): TypedArray {
  const out = valuesArray(
    dtype,
    parts.reduce((n, p) => n + p.n, 0),
  )
  let offset = 0
  for (const { column, entry, n } of parts) {
    out.set(entry ? gatherColumn(column, entry as Ints) : column, offset)
    offset += n
  }
  return out
}
