/** The operations of conversion as generated kernels on columns in device memory. */

import { fail, type Span } from '../../../ast/diagnostics/diagnostic.ts'
import { countText } from '../../../ast/diagnostics/value-kinds.ts'
import { FEWER_POSITIONS } from '../../../columns/allocate.ts'
import type { Engine } from '../../../columns/column-engine.ts'
import { waitFor } from '../../../columns/coroutines.ts'
import { add, load, variable } from '../../../ir/expressions/expr.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import { measureKeys } from '../../columns/sort-permutations.ts'
import { type Column, natural, read, update } from './kernels/column-types.ts'
import { get, store } from './kernels/kernel-builder.ts'
import * as reading from './kernels/level-iteration.ts'
import * as levels from './kernels/level-scans.ts'
import * as maps from './kernels/map-reduce.ts'
import { padWithLast } from './kernels/repeat-last.ts'
import * as values from './kernels/values.ts'
import type { Queue } from './queue/command-queue.ts'
import * as queries from './sorting/group-reductions.ts'
import { orderBy } from './sorting/lexicographic-order.ts'
import { filledColumn, partition } from './sorting/partition.ts'

export function deviceEngine(q: Queue): Engine<Column> {
  return {
    upload: (array, label) => waitFor(q.upload(array, 'i32', label)),
    unload: (...columns) => q.release(...columns),
    release: (...columns) => q.release(...columns),
    empty: (length, label) => q.column(length, 'i32', label),
    filled: (length, value, label) => filledColumn(q, length, value, label),
    concatenate: (parts, dtype) => concatenate(q, parts, dtype),
    rejectCount,
    runConcurrently: (work) => q.together(work),
    flush: () => waitFor(q.flush()),
    compute: (frame, name, e) => maps.compute(q, frame, name, e),
    *computeChecked(frame, name, e, conditions) {
      const violations = conditions.length > 0 ? yield* maps.findFirst(q, frame, conditions) : []
      if (violations.every((x) => x < 0)) maps.compute(q, frame, name, e)
      return violations
    },
    // Kernels fuse the expressions that they use.
    materialize: (_frame, _name, e) => e,
    valuesAt: (frame, exprs, entry) => maps.valuesAt(q, frame, exprs, entry),
    // Overflows are rejected while kernels are built.
    fits: () => true,
    fillsTables: false,
    bindNumbers(frame, name, column, dtype) {
      frame.tables.set(name, column)
      frame.signed.add(name)
      return dtype
    },
    findFirst: (frame, conditions) => maps.findFirst(q, frame, conditions),
    largest: (frame, e) => maps.largest(q, frame, e),
    bounds: (frame, e) => maps.bounds(q, frame, e),
    isAscending: () => false,
    *order(frame, keys) {
      yield* orderBy(q, frame, yield* measureKeys(frame, keys))
      return frame
    },
    restore: (_frame, _ordered, _name, e) => e,
    partition: (frame, name, count) => partition(q, frame, name, count),
    compact: (frame, condition, columns, sizes) => reading.compact(q, frame, condition, columns, sizes),
    scatter: (frame, to, at, value) => levels.scatter(q, frame, to, at, value),
    scatterFirsts: (frame, to, at, value) => levels.scatter(q, frame, to, at, value, true),
    padWithLast(indices, width, none, label) {
      return padWithLast(this, indices, width, none, label)
    },
    runs: (frame, name, starts) => levels.runs(q, frame, name, starts),
    ranks: (frame, name, starts, within) => levels.ranks(q, frame, name, starts, within),
    cuts: (frame, name, rank, options) => levels.cuts(q, frame, name, rank, options),
    segmentEnds: (frame, at, parent, parents, label) =>
      levels.segmentEnds(q, frame, at, parent, parents, label),
    segment: (positions, label) => levels.segment(q, positions, label),
    lengths: (frame, parent, coordinate, parents, label) =>
      levels.lengths(q, frame, parent, coordinate, parents, label),
    offsets: (lengths, most, label) => levels.offsets(q, lengths, most, label),
    bitmap: (frame, name, starts, options) => levels.bitmap(q, frame, name, starts, options),
    rankInSegments: null,
    count: (frame, query, apart) => queries.count(q, frame, query, apart),
    rank: (frame, query) => queries.rank(q, frame, query),
    minimum: (frame, query) => queries.minimum(q, frame, query),
    rankByMagnitude: (frame, query, scope) => values.rankByMagnitude(q, frame, query, scope),
    takeValues: (frame, name, column) => values.takeValues(q, frame, name, column),
    *sumsOfEqual(frame, column, _dtype, dims, distinct) {
      return distinct ? { sums: column, distinct } : yield* values.sumsOfEqual(q, frame, column, dims)
    },
    storeValues: (frame, at, size, source) => ({
      values: values.storeValues(q, frame, at, size, source),
      entries: null,
    }),
    locate: null,
    parentsOf: (indptr, parents, positions) => reading.parentsOf(q, indptr, parents, positions),
    bitsOf: (level, parents) => reading.bitsOf(q, level, parents),
  }
}

/** Rejects a count of positions. @throws SptError `convert/too-large` */
function rejectCount(count: number, what: string, span?: Span): never {
  return fail({
    code: 'convert/too-large',
    message: `${Number.isFinite(count) ? countText(count) : 'too many'} ${what}: more than a 32-bit position can count`,
    ...(span ? { span } : {}),
    expected: 'at most 2147483647: positions are 32-bit',
    hint: FEWER_POSITIONS,
  })
}

function concatenate(
  q: Queue,
  parts: readonly { readonly column: Column; readonly entry: Column | null; readonly n: number }[],
  dtype: Dtype,
): Column {
  const out = q.column(
    parts.reduce((n, p) => n + p.n, 0),
    dtype,
    'entries',
  )
  let offset = 0
  for (const p of parts) {
    append(q, p.column, p.entry, out, offset, p.n)
    offset += p.n
  }
  return out
}

/** `to[at + e] = from[entry[e]]`. */
function append(q: Queue, from: Column, entry: Column | null, to: Column, offset: number, n: number): void {
  q.launch({
    key: `append ${entry ? 'entry' : ''}`,
    threads: n,
    columns: { x_from: read(from), ...(entry ? { x_entry: natural(entry) } : {}), x_to: update(to) },
    sizes: { x_at: offset },
    body: (e) => [
      store('x_to', add(e, variable('x_at')), load('x_from', [entry ? get('x_entry', e) : e], from.dtype)),
    ],
  })
}
