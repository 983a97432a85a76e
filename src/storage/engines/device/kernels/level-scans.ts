/** Scans for level assembly: run numbers, segment ends, offsets, and masks with atomic updates. */
import { invariant } from '../../../../ast/diagnostics/diagnostic.ts'
import type { Frame } from '../../../../columns/column-engine.ts'
import type { Coroutine } from '../../../../columns/coroutines.ts'
import type { BitmapOptions, CutOptions, Starts } from '../../../../columns/engine-operands.ts'
import {
  add,
  binary,
  call,
  div,
  type Expr,
  eq,
  int,
  lt,
  mod,
  mul,
  variable,
} from '../../../../ir/expressions/expr.ts'
import { when } from '../../../../ir/statements/statement-builders.ts'
import type { Queue } from '../queue/command-queue.ts'
import type { Cells } from '../queue/readback.ts'
import { differs } from '../sorting/lexicographic-order.ts'
import { combine } from './block-scan.ts'
import {
  atomic,
  type Column,
  flag,
  get,
  natural,
  next,
  read,
  store,
  update,
  whereLast,
  write,
} from './kernel-builder.ts'
import { numbers, type Terms, termsOf } from './map-reduce.ts'
import { reduce, scan } from './scan.ts'

type F = Frame<Column>

/** The condition that an entry starts a run, as kernel terms, with the values of the keys. */
function runStartTerms(q: Queue, frame: F, { keys, cut }: Starts) {
  const t = termsOf(q, frame, cut ? [...keys, cut] : keys)
  const at = (e: Expr): readonly Expr[] => t.at(e).slice(0, keys.length)
  const changes = (e: Expr): Expr => differs(at, e)
  return {
    key: `starts ${cut !== null} ${t.key}`,
    columns: t.columns,
    sizes: t.sizes,
    at,
    cond: (e: Expr): Expr => (cut ? binary('or', changes(e), eq(t.at(e)[keys.length]!, int(1))) : changes(e)),
  }
}

/** A column with each entry's run number, counted within equal values of the first `within` keys. */
export function runNumbers(
  q: Queue,
  frame: F,
  label: string,
  starts: Starts,
  within = 0,
  total?: Cells,
): Column {
  const runs = runStartTerms(q, frame, starts)
  const out = q.column(frame.n, 'i32', label)
  scan(q, {
    ...runs,
    key: `numbers ${within} ${runs.key}`,
    n: frame.n,
    op: '+',
    columns: { ...runs.columns, x_out: write(out) },
    value: (e) => flag(runs.cond(e)),
    ...(within > 0 ? { reset: (e: Expr) => differs((x) => runs.at(x).slice(0, within), e) } : {}),
    body: (e, sum, own) => [store('x_out', e, add(sum, add(own, int(-1))))],
    total,
  })
  return out
}

export const ranks = (q: Queue, frame: F, name: string, starts: Starts, within: number): void =>
  frame.set(name, runNumbers(q, frame, name, starts, within))

export function* runs(q: Queue, frame: F, name: string, starts: Starts): Coroutine<number> {
  const total = q.cells()
  frame.set(name, runNumbers(q, frame, name, starts, 0, total))
  const [count = 0] = yield* numbers(q, total)
  return count
}

export function cuts(q: Queue, frame: F, name: string, rank: string | null, options: CutOptions): void {
  invariant(options.tuple === null, 'equal coordinates share a position on a device')
  const { n } = frame
  const c = runStartTerms(q, frame, options.starts)
  const cut = q.column(n, 'i32', name)
  const rankColumn = rank ? q.column(n, 'i32', rank) : null
  scan(q, {
    ...c,
    key: `cuts ${options.within.length} ${rankColumn !== null} ${c.key}`,
    n,
    op: '+',
    columns: { ...c.columns, x_cut: write(cut), ...(rankColumn ? { x_rank: write(rankColumn) } : {}) },
    sizes: { ...c.sizes, x_width: options.width },
    value: (e) => flag(c.cond(e)),
    reset: (e) => differs((x) => c.at(x).slice(0, options.within.length), e),
    body: (e, before, own) => [
      store('x_cut', e, flag(binary('and', eq(own, int(1)), eq(mod(before, variable('x_width')), int(0))))),
      ...(rankColumn ? [store('x_rank', e, mod(add(before, add(own, int(-1))), variable('x_width')))] : []),
    ],
  })
  frame.set(name, cut)
  if (rank && rankColumn) frame.set(rank, rankColumn)
}

/**
 * `to[at] = value`. `firstsOnly`: entries are in order of `at`, and only the first entry at each index
 * writes.
 */
export function scatter(q: Queue, frame: F, to: Column, at: Expr, value: Expr, firstsOnly = false): void {
  const t = termsOf(q, frame, [at, value])
  q.launch({
    ...t,
    key: `${firstsOnly ? 'firsts' : 'scatter'} ${t.key}`,
    threads: frame.n,
    columns: { ...t.columns, x_to: write(to) },
    body: (e) => {
      const [index, x] = t.at(e) as [Expr, Expr]
      const set = [store('x_to', index, x)]
      return firstsOnly ? [when(startsRun(t, e), set)] : set
    },
  })
}

/** True if the first term differs from its value at the previous entry. */
const startsRun = (t: Terms, e: Expr): Expr => differs((x) => [t.at(x)[0]!], e)

export function segment(q: Queue, positions: number, label: string): Column {
  const indptr = q.column(2, 'i32', label)
  q.launch({
    key: 'only segment',
    threads: 2,
    columns: { x_indptr: write(indptr) },
    sizes: { x_positions: positions },
    body: (p) => [store('x_indptr', p, mul(p, variable('x_positions')))],
  })
  return indptr
}

/** `indptr[p]` is the scan of all elements before p. */
function scanToIndptr(q: Queue, values: Column, indptr: Column, op: '+' | 'max', total?: Cells): void {
  scan(q, {
    key: `indptr ${op}`,
    n: values.length,
    op,
    columns: { x_of: natural(values), x_indptr: write(indptr) },
    value: (p) => get('x_of', p),
    body: (p, before, own) => [
      store('x_indptr', p, before),
      when(eq(next(p), variable('x_n')), [store('x_indptr', next(p), combine(op, before, own))]),
    ],
    total,
  })
  if (values.length === 0) q.clear(indptr)
}

/** `indptr[p + 1]` is the end of the last non-empty segment up to segment p; entries are in order of `at`. */
export function segmentEnds(
  q: Queue,
  frame: F,
  at: Expr,
  parent: Expr,
  parents: number,
  label: string,
): Column {
  const { n } = frame
  const ends = q.column(parents, 'i32', `ends of ${label}`)
  q.clear(ends)
  const t = termsOf(q, frame, [at, parent])
  q.launch({
    ...t,
    key: `ends ${t.key}`,
    threads: n,
    columns: { ...t.columns, x_ends: write(ends) },
    sizes: { ...t.sizes, x_n: n },
    body: (e) => {
      const [q0, p0] = t.at(e) as [Expr, Expr]
      return [whereLast(e, binary('ne', p0, t.at(next(e))[1]!), store('x_ends', p0, next(q0)))]
    },
  })
  const indptr = q.column(parents + 1, 'i32', label)
  scanToIndptr(q, ends, indptr, 'max')
  q.release(ends)
  return indptr
}

/** The length of each segment: 1 + its largest coordinate. */
export function lengths(
  q: Queue,
  frame: F,
  parent: Expr,
  coordinate: Expr,
  parents: number,
  label: string,
): Column {
  const out = q.column(parents, 'i32', label)
  q.clear(out)
  const t = termsOf(q, frame, [parent, coordinate])
  q.launch({
    ...t,
    key: `lengths ${t.key}`,
    threads: frame.n,
    columns: { ...t.columns, x_lengths: update(out) },
    sizes: { ...t.sizes, x_n: frame.n },
    body: (e) => {
      const [parentPosition, c] = t.at(e) as [Expr, Expr]
      const [nextParent, nextCoordinate] = t.at(next(e)) as [Expr, Expr]
      // In a run of ascending coordinates only the last one can be the largest.
      const isLast = binary('or', binary('ne', parentPosition, nextParent), lt(nextCoordinate, c))
      return [whereLast(e, isLast, atomic('max', 'x_lengths', parentPosition, next(c)))]
    },
  })
  return out
}

const MAX_TOTAL = 2 ** 31 - 1

/** `total` is infinite if the sum exceeds 32 bits. */
export function* offsets(
  q: Queue,
  lengths: Column,
  maxTotal: number,
  label: string,
): Coroutine<{ indptr: Column; total: number }> {
  const parents = lengths.length
  const indptr = q.column(parents + 1, 'i32', label)
  const cells = q.cells(2)
  scanToIndptr(q, lengths, indptr, '+', cells)
  // Lengths are below 2^31, so the first partial sum that overflows is negative.
  if (maxTotal > MAX_TOTAL)
    reduce(q, {
      key: 'wrapped',
      n: parents + 1,
      op: 'max',
      columns: { x_indptr: read(indptr) },
      values: (p) => [flag(lt(get('x_indptr', p), int(0)))],
      cells: { ...cells, first: cells.first + 1, count: 1 },
    })
  const [sum = 0, overflowed = 0] = yield* numbers(q, cells)
  return { indptr, total: maxTotal > MAX_TOTAL && overflowed > 0 ? Number.POSITIVE_INFINITY : sum }
}

export function* bitmap(q: Queue, frame: F, name: string, starts: Starts, options: BitmapOptions) {
  const { parent, parents, words, label } = options
  const positions = yield* runs(q, frame, name, starts)
  const at = variable(name)
  const indptr = segmentEnds(q, frame, at, parent, parents, `${label}_indptr`)
  const mask = q.column(parents * words, 'i32', `${label}_mask`)
  q.clear(mask)
  const t = termsOf(q, frame, [at, parent, options.coordinate])
  q.launch({
    ...t,
    key: `mask ${t.key}`,
    threads: frame.n,
    columns: { ...t.columns, x_mask: update(mask) },
    sizes: { ...t.sizes, x_words: words },
    body: (e) => {
      const [, p, c] = t.at(e) as [Expr, Expr, Expr]
      const word = add(mul(p, variable('x_words')), div(c, int(32)))
      const bit = call('shift_left', [int(1), mod(c, int(32))])
      // Each bit is added once, because entries with one coordinate are adjacent.
      return [when(startsRun(t, e), [atomic('+', 'x_mask', word, bit)])]
    },
  })
  return { mask, indptr, positions }
}
