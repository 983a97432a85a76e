/** The operations of conversion as generated kernels on columns in device memory. */

import { countText } from '../../../ast/count-text.ts'
import { fail, type Span } from '../../../ast/diagnostic.ts'
import { FEWER_POSITIONS } from '../../../columns/allocate.ts'
import type { Dtype } from '../../../ir/dtype.ts'
import { add, load, variable } from '../../../ir/expr.ts'
import type { Engine } from '../../column-engine.ts'
import { waitFor } from '../../coroutines.ts'
import { measured } from '../../sort-keys.ts'
import { type Column, natural, read, update } from './column-types.ts'
import type { Queue } from './command-queue.ts'
import * as queries from './group-reductions.ts'
import { get, store } from './kernel-builder.ts'
import * as reading from './level-iteration.ts'
import * as levels from './level-scans.ts'
import { orderBy } from './lexicographic-order.ts'
import * as maps from './map-reduce.ts'
import { filled, partition } from './partition.ts'
import { repeatLast } from './repeat-last.ts'
import * as values from './values.ts'

export function deviceEngine(q: Queue): Engine<Column> {
  return {
    upload: (array, label) => waitFor(q.upload(array, 'i32', label)),
    unload: (...columns) => q.release(...columns),
    release: (...columns) => q.release(...columns),
    empty: (length, label) => q.column(length, 'i32', label),
    filled: (length, value, label) => filled(q, length, value, label),
    concatenated: (parts, dtype) => concatenated(q, parts, dtype),
    tooLarge,
    together: (work) => q.together(work),
    flush: () => waitFor(q.flush()),
    compute: (frame, name, e) => maps.compute(q, frame, name, e),
    *computeChecked(frame, name, e, conditions) {
      const found = conditions.length > 0 ? yield* maps.first(q, frame, conditions) : []
      if (found.every((x) => x < 0)) maps.compute(q, frame, name, e)
      return found
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
    first: (frame, conditions) => maps.first(q, frame, conditions),
    largest: (frame, e) => maps.largest(q, frame, e),
    bounds: (frame, e) => maps.bounds(q, frame, e),
    ascends: () => false,
    *order(frame, keys) {
      yield* orderBy(q, frame, yield* measured(frame, keys))
      return frame
    },
    restore: (_frame, _ordered, _name, e) => e,
    partition: (frame, name, count) => partition(q, frame, name, count),
    compact: (frame, condition, columns, sizes) => reading.compact(q, frame, condition, columns, sizes),
    scatter: (frame, to, at, value) => levels.scatter(q, frame, to, at, value),
    scatterFirsts: (frame, to, at, value) => levels.scatter(q, frame, to, at, value, true),
    repeatLast(held, width, none, label) {
      return repeatLast(this, held, width, none, label)
    },
    runs: (frame, name, starts) => levels.runs(q, frame, name, starts),
    ranks: (frame, name, starts, within) => levels.ranks(q, frame, name, starts, within),
    cuts: (frame, name, rank, of) => levels.cuts(q, frame, name, rank, of),
    segmentEnds: (frame, at, parent, parents, label) =>
      levels.segmentEnds(q, frame, at, parent, parents, label),
    segment: (positions, label) => levels.segment(q, positions, label),
    lengths: (frame, parent, coordinate, parents, label) =>
      levels.lengths(q, frame, parent, coordinate, parents, label),
    offsets: (lengths, most, label) => levels.offsets(q, lengths, most, label),
    bitmap: (frame, name, starts, of) => levels.bitmap(q, frame, name, starts, of),
    ranked: null,
    count: (frame, query, apart) => queries.count(q, frame, query, apart),
    rank: (frame, query) => queries.rank(q, frame, query),
    least: (frame, query) => queries.least(q, frame, query),
    largestFirst: (frame, query, scope) => values.largestFirst(q, frame, query, scope),
    takeValues: (frame, name, column) => values.takeValues(q, frame, name, column),
    *sumsOfEqual(frame, column, _dtype, dims, distinct) {
      return distinct ? { sums: column, distinct } : yield* values.sumsOfEqual(q, frame, column, dims)
    },
    storeValues: (frame, at, size, of) => ({
      values: values.storeValues(q, frame, at, size, of),
      entries: null,
    }),
    find: null,
    parentsOf: (indptr, parents, positions) => reading.parentsOf(q, indptr, parents, positions),
    bitsOf: (level, parents) => reading.bitsOf(q, level, parents),
  }
}

/** Rejects a count of positions. @throws SptError `convert/too-large` */
function tooLarge(count: number, what: string, span?: Span): never {
  return fail({
    code: 'convert/too-large',
    message: `${Number.isFinite(count) ? countText(count) : 'too many'} ${what}: more than a 32-bit position can count`,
    ...(span ? { span } : {}),
    expected: 'at most 2147483647: positions are 32-bit',
    hint: FEWER_POSITIONS,
  })
}

function concatenated(
  q: Queue,
  parts: readonly { readonly column: Column; readonly entry: Column | null; readonly n: number }[],
  dtype: Dtype,
): Column {
  const out = q.column(
    parts.reduce((n, p) => n + p.n, 0),
    dtype,
    'entries',
  )
  let at = 0
  for (const p of parts) {
    append(q, p.column, p.entry, out, at, p.n)
    at += p.n
  }
  return out
}

/** `to[at + e] = from[entry[e]]`. */
function append(q: Queue, from: Column, entry: Column | null, to: Column, at: number, n: number): void {
  q.launch({
    key: `append ${entry ? 'entry' : ''}`,
    threads: n,
    columns: { x_from: read(from), ...(entry ? { x_entry: natural(entry) } : {}), x_to: update(to) },
    sizes: { x_at: at },
    body: (e) => [
      store('x_to', add(e, variable('x_at')), load('x_from', [entry ? get('x_entry', e) : e], from.dtype)),
    ],
  })
}
