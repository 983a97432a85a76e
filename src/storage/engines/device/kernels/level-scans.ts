/** Scans for level assembly: run numbers, segment ends, offsets, and masks with atomic updates. */

import { invariant } from '../../../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../../../ast/work.ts'
import type { GroupReduction, Starts } from '../../../../columns/engine-operands.ts'
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
  sub,
  variable,
} from '../../../../ir/expressions/expr.ts'
import { when } from '../../../../ir/statements/statement-builders.ts'
import { INT_RANGE } from '../../../../ir/values/dtype.ts'
import { type DeviceEngine, type F, type Queue, queueIn } from '../queue/command-queue.ts'
import type { Cells } from '../queue/readback.ts'
import { differs } from '../sorting/lexicographic-order.ts'
import { combine, type Op } from './block-scan.ts'
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
import { launchOver, numbers, type Terms, termsOf } from './map-reduce.ts'
import { reduce, scan } from './scan.ts'

function runStartTerms(frame: F, { keys, cut }: Starts) {
  const t = termsOf(frame, cut ? [...keys, cut] : keys)
  const at = (e: Expr): readonly Expr[] => t.at(e).slice(0, keys.length)
  const cond = (e: Expr): Expr =>
    cut ? binary('or', differs(at, e), eq(t.at(e)[keys.length]!, int(1))) : differs(at, e)
  return { ...t, key: `starts ${cut !== null} ${t.key}`, at, cond }
}

/** A column with each entry's run number, counted within equal values of the first `within` keys. */
export function runNumbers(frame: F, label: string, starts: Starts, within = 0, total?: Cells): Column {
  const q = queueIn(frame)
  const runs = runStartTerms(frame, starts)
  const out = q.column(frame.n, 'i32', label)
  scan(q, {
    ...runs,
    key: `numbers ${within} ${runs.key}`,
    n: frame.n,
    op: '+',
    columns: { ...runs.columns, x_out: write(out) },
    value: (e) => flag(runs.cond(e)),
    ...(within > 0 && { reset: (e: Expr) => differs((x) => runs.at(x).slice(0, within), e) }),
    body: (e, sum, own) => [store('x_out', e, add(sum, add(own, int(-1))))],
    total,
  })
  return out
}

export const ranks: DeviceEngine['ranks'] = (frame, name, starts, within) =>
  frame.set(name, runNumbers(frame, name, starts, within))

export const runs: DeviceEngine['runs'] = function* (frame, name, starts) {
  const q = queueIn(frame)
  const total = q.cells()
  frame.set(name, runNumbers(frame, name, starts, 0, total))
  const [count = 0] = yield* numbers(q, total)
  return count
}

export const cuts: DeviceEngine['cuts'] = (frame, name, rank, options) => {
  invariant(options.tuple === null, 'equal coordinates share a position on a device')
  const q = queueIn(frame)
  const { n } = frame
  const c = runStartTerms(frame, options.starts)
  const cut = q.column(n, 'i32', name)
  const rankColumn = rank ? q.column(n, 'i32', rank) : null
  scan(q, {
    ...c,
    key: `cuts ${options.within.length} ${rankColumn !== null} ${c.key}`,
    n,
    op: '+',
    columns: { ...c.columns, x_cut: write(cut), ...(rankColumn && { x_rank: write(rankColumn) }) },
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

export const scatter: DeviceEngine['scatter'] = (frame, to, at, value, firstsOnly = false) =>
  launchOver(frame, [at, value], firstsOnly ? 'firsts' : 'scatter', { x_to: write(to) }, (e, terms) => {
    const [index, x] = terms(e) as [Expr, Expr]
    const set = [store('x_to', index, x)]
    return firstsOnly ? [when(startsRun(terms, e), set)] : set
  })

const startsRun = (at: Terms['at'], e: Expr): Expr => differs((x) => [at(x)[0]!], e)

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

/** `indptr[p + 1]` is the end of the last non-empty segment up to segment p. */
export const segmentEnds: DeviceEngine['segmentEnds'] = (frame, at, parent, parents, label) => {
  const q = queueIn(frame)
  const ends = q.column(parents, 'i32', `ends of ${label}`)
  q.clear(ends)
  const storeEnd = (e: Expr, terms: Terms['at']) => {
    const [q0, p0] = terms(e) as [Expr, Expr]
    return [whereLast(e, binary('ne', p0, terms(next(e))[1]!), store('x_ends', p0, next(q0)))]
  }
  launchOver(frame, [at, parent], 'ends', { x_ends: write(ends) }, storeEnd, { x_n: frame.n })
  const indptr = q.column(parents + 1, 'i32', label)
  scanToIndptr(q, ends, indptr, 'max')
  q.release(ends)
  return indptr
}

export const lengths: DeviceEngine['lengths'] = (frame, parent, coordinate, parents, label) => {
  const q = queueIn(frame)
  const out = q.column(parents, 'i32', label)
  q.clear(out)
  const raise = (e: Expr, terms: Terms['at']) => {
    const [parentPosition, c] = terms(e) as [Expr, Expr]
    const [nextParent, nextCoordinate] = terms(next(e)) as [Expr, Expr]
    // In a run of ascending coordinates only the last one can be the largest.
    const isLast = binary('or', binary('ne', parentPosition, nextParent), lt(nextCoordinate, c))
    return [whereLast(e, isLast, atomic('max', 'x_lengths', parentPosition, next(c)))]
  }
  launchOver(frame, [parent, coordinate], 'lengths', { x_lengths: update(out) }, raise, { x_n: frame.n })
  return out
}

const MAX_TOTAL = 2 ** 31 - 1

/** `total` is infinite if the sum exceeds 32 bits. */
export function* offsetsOf(
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

export const bitmap: DeviceEngine['bitmap'] = function* (frame, name, starts, options) {
  const q = queueIn(frame)
  const { parent, parents, words, label } = options
  const positions = yield* runs(frame, name, starts)
  const at = variable(name)
  const indptr = segmentEnds(frame, at, parent, parents, `${label}_indptr`)
  const mask = q.column(parents * words, 'i32', `${label}_mask`)
  q.clear(mask)
  const setBit = (e: Expr, terms: Terms['at']) => {
    const [, p, c] = terms(e) as [Expr, Expr, Expr]
    const word = add(mul(p, variable('x_words')), div(c, int(32)))
    const bit = call('shift_left', [int(1), mod(c, int(32))])
    // Each bit is added once, because entries with one coordinate are adjacent.
    return [when(startsRun(terms, e), [atomic('+', 'x_mask', word, bit)])]
  }
  const columns = { x_mask: update(mask) }
  launchOver(frame, [at, parent, options.coordinate], 'mask', columns, setBit, { x_words: words })
  return { mask, indptr, positions }
}

// Reductions of groups that are runs of entries, by a segmented scan.

interface Reduction {
  readonly op: Op
  /** The value of entry `e`; `of`: the index of the first key after those of the group. */
  readonly value: (at: Terms['at'], e: Expr, of: number) => Expr
  readonly result: (total: Expr) => Expr
}

const complement = (x: Expr): Expr => sub(int(INT_RANGE.i32[1]), x)

/** A minimum is computed as a maximum of complements, because scans support only + and max. */
const REDUCTIONS: Readonly<Record<GroupReduction, Reduction>> = {
  entries: { op: '+', value: () => int(1), result: (total) => total },
  tuples: { op: '+', value: (at, e) => flag(differs(at, e)), result: (total) => total },
  minimum: { op: 'max', value: (at, e, of) => complement(at(e)[of]!), result: complement },
}

/** Distributes the result from the last entry of a group to all of its entries. */
export const reduceGroups: DeviceEngine['reduceGroups'] = (frame, name, by, of, reduction) => {
  const q = queueIn(frame)
  const { n } = frame
  const { op, value, result } = REDUCTIONS[reduction]
  const t = termsOf(frame, [...by, ...of])
  const group = (e: Expr): readonly Expr[] => t.at(e).slice(0, by.length)
  const groups = runNumbers(frame, 'groups', { keys: by, cut: null })
  const totals = q.column(n, 'i32', 'totals')
  scan(q, {
    ...t,
    key: `${reduction} ${by.length} ${t.key}`,
    n,
    op,
    columns: { ...t.columns, x_groups: natural(groups), x_totals: write(totals) },
    value: (e) => value(t.at, e, by.length),
    reset: (e) => differs(group, e),
    body: (e, before, own) => {
      const isLast = binary('ne', get('x_groups', e), get('x_groups', next(e)))
      return [whereLast(e, isLast, store('x_totals', get('x_groups', e), combine(op, before, own)))]
    },
  })
  const out = q.column(n, 'i32', name)
  q.launch({
    key: `${reduction} of group`,
    threads: n,
    columns: { x_groups: natural(groups), x_totals: natural(totals), x_out: write(out) },
    body: (e) => [store('x_out', e, result(get('x_totals', get('x_groups', e))))],
  })
  frame.set(name, out)
  q.release(groups, totals)
}
