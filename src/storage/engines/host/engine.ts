/** The operations of conversion on typed arrays; entries are not sorted if ranks can be computed without sorting. */
import { allocate, borrowExact, rejectCount, release } from '../../../columns/allocate.ts'
import type { Engine } from '../../../columns/column-engine.ts'
import { ready } from '../../../columns/coroutines.ts'
import { type OpenSortKey, sortedPrefix } from '../../../columns/engine-operands.ts'
import { isAscending, largest, nonNegative } from '../../../columns/key-columns.ts'
import { isSorted, lexicographic } from '../../../columns/lexicographic-sort.ts'
import type { Level } from '../../../columns/stored-level.ts'
import { type Expr, variable } from '../../../ir/expressions/expr.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import { decoder, newValues as valuesArray } from '../../tensor.ts'
import * as queries from './attribute-columns.ts'
import { fits } from './extremes.ts'
import * as reading from './level-iteration.ts'
import { locateInLevel } from './level-iteration.ts'
import * as scans from './level-scans.ts'
import * as maps from './map-reduce.ts'
import { columnOf, type F, newValues, valuesOf } from './map-reduce.ts'
import { gatherColumn, partition, storeValues } from './scatter.ts'
import { rankSegments } from './segment-ranks.ts'

type Ints = Int32Array

export const HOST: Engine<TypedArray> = {
  upload: (values) => ready(values),
  // The array belongs to the caller.
  unload() {},
  release(...columns) {
    for (const c of columns) if (c instanceof Int32Array) release(c)
  },
  empty: (length, label) => allocate(length, label),
  filled: (length, value, label) => {
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
  computeChecked(frame, name, e, conditions) {
    const { found: violations, out } = maps.checkedValues(frame, e, conditions)
    frame.set(name, out)
    return ready(violations)
  },
  materialize(frame, name, e, defer = false) {
    if (columnOf(frame, e)) return e
    const evaluate = () => newValues(frame, e, `the coordinate on ${name.replace(/^@(at )?/, '')}`)
    if (defer) frame.deferred.set(name, evaluate)
    else frame.set(name, evaluate())
    return variable(name)
  },
  valuesAt: (frame, exprs, entry) => ready(maps.valuesAt(frame, exprs, entry)),
  fits,
  fillsTables: true,
  bindNumbers(frame, name, values, dtype) {
    const read = decoder(dtype)
    frame.tables.set(name, read ? Float32Array.from(values, read) : values)
    return read ? 'f32' : dtype
  },

  findFirst: (frame, conditions) => ready(maps.findFirst(frame, conditions)),
  largest: (frame, e) => ready(maps.bounds(frame, e)[1]),
  bounds: (frame, e) => ready(maps.bounds(frame, e)),
  isAscending(frame, dims) {
    const columns = dims.map((d) => valuesOf(frame, variable(d.name)))
    if (!isAscending(columns)) return false
    frame.sortedBy = dims.map((d) => variable(d.name))
    return true
  },

  order: (frame, keys) => ready(sortFrame(frame, keys)),
  restore(frame, ordered, name, e) {
    if (ordered === frame) return e
    const out = borrowExact(frame.n, 'entries')
    scatter(out, ordered.entry as Ints, valuesOf(ordered, e))
    ordered.release()
    frame.set(name, out)
    return variable(name)
  },
  partition: (frame, name, count) => ready(partition(frame, name, count)),
  compact: (frame, condition, columns, sizes) => ready(reading.compact(frame, condition, columns, sizes)),
  scatter: (frame, to, index, value) => scatter(to as Ints, valuesOf(frame, index), valuesOf(frame, value)),
  scatterFirsts: (frame, to, at, value) => scatter(to as Ints, valuesOf(frame, at), valuesOf(frame, value)),

  padWithLast: (indices, width, none) => ready(scans.padWithLast(indices as Ints, width, none)),
  runs: (frame, name, starts) => ready(scans.runs(frame, name, starts)),
  ranks: scans.ranks,
  cuts: scans.cuts,
  segmentEnds: scans.segmentEnds,
  segment: (positions) => Int32Array.of(0, positions),
  lengths: scans.lengths,
  offsets: (lengths, _most, label) => ready(scans.offsets(lengths as Ints, label)),
  bitmap: (frame, name, _starts, options) => ready(scans.bitmap(frame, name, options)),
  rankInSegments(frame, name, { parent, parents, coordinate, extent }, keys) {
    const columns = keys.map((k) => valuesOf(frame, k.expr))
    if (isOrdered(frame, keys, columns)) return null
    const segmentRanks = rankSegments(
      parent && valuesOf(frame, parent),
      valuesOf(frame, coordinate),
      extent,
      parents,
    )
    if (!segmentRanks) return null
    frame.set(name, segmentRanks.rank)
    return segmentRanks.counts
  },

  count: (frame, q, apart) => ready(queries.count(frame, q, apart)),
  rank: (frame, q, apart) => ready(queries.rank(frame, q, apart)),
  minimum: (frame, q) => ready(queries.minimum(frame, q)),
  rankByMagnitude: (frame, q, scope) => ready(queries.rankByMagnitude(frame, q, scope)),
  takeValues: queries.takeValues,
  sumsOfEqual: (frame, values, dtype, dims, distinct) =>
    ready({ sums: queries.sumsOfEqual(frame, values, dtype, dims, distinct), distinct }),
  storeValues,

  locate(frame, name, level, parent, coordinate) {
    const positions = locateInLevel(
      level as Level,
      parent && valuesOf(frame, parent),
      valuesOf(frame, coordinate),
    )
    frame.set(name, positions)
    return variable(name)
  },
  parentsOf: (indptr, parents, positions) => reading.parentsOf(indptr as Ints, parents, positions),
  bitsOf: (level, parents) => reading.bitsOf(level as Level, parents),
}

function isOrdered(frame: F, keys: readonly OpenSortKey[], columns: readonly Ints[]): boolean {
  const exprs = keys.map((k) => k.expr)
  const positive = (e: Expr): boolean =>
    e.kind === 'const' ? e.value > 0 : e.kind === 'var' && (frame.sizes.get(e.name) ?? 0) > 0
  if (sortedPrefix(exprs, frame.sortedBy, frame.monotone, positive) === keys.length) return true
  if (!isSorted(columns)) return false
  frame.sortedBy = exprs
  return true
}

/** The frame itself, or a frame of its entries in order whose `entry` refers to `frame`. */
function sortFrame(frame: F, keys: readonly OpenSortKey[]): F {
  if (keys.length === 0 || frame.n < 2) return frame
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
    out.deferred.delete(expr.name)
    out.set(expr.name, sorted[index]!)
  }
  out.setEntry(order)
  out.sortedBy = keys.map((k) => k.expr)
  return out
}

function scatter(to: Ints, index: Ints, value: Ints): void {
  for (let e = 0; e < index.length; e++) to[index[e]!] = value[e]!
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
