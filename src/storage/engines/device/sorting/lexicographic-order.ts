/**
 * Lexicographic sorting of entries in as few passes as their present order allows: leading keys that are in order split
 * the entries into runs that are sorted separately (segmented sort), and trailing keys that are in order within those
 * runs need no pass, because passes are stable.
 */

import type { Coroutine } from '../../../../ast/work.ts'
import type { SortKey } from '../../../../columns/engine-operands.ts'
import {
  add,
  and,
  binary,
  bool,
  type Expr,
  eq,
  int,
  lt,
  mul,
  select,
  variable,
} from '../../../../ir/expressions/expr.ts'
import { when } from '../../../../ir/statements/statement-builders.ts'
import { before, flag, isFirst, next, store, write } from '../kernels/kernel-builder.ts'
import { numbers, termsOf } from '../kernels/map-reduce.ts'
import { reduce, scan } from '../kernels/scan.ts'
import { type F, type Queue, queueIn } from '../queue/command-queue.ts'
import { reorder } from './partition.ts'
import { costOf, counterCount, FEW_ENTRIES, passCount, radixSort } from './radix-sort.ts'
import type { Key, Segments } from './radix-sort-chunks.ts'

/** True if some expression differs from the previous entry's; true at the first entry. */
export function differs(at: (e: Expr) => readonly Expr[], e: Expr): Expr {
  const current = at(e)
  const previous = at(before(e))
  return current.reduce<Expr>(
    (anyDiffers, x, k) => binary('or', anyDiffers, binary('ne', x, previous[k]!)),
    isFirst(e),
  )
}

/** Sorts the entries by `keys`. Needs one readback if the order is unknown, and another if there are runs to sort. */
export function* orderBy(frame: F, keys: readonly SortKey[]): Coroutine<void> {
  const q = queueIn(frame)
  const { n } = frame
  const exprs = keys.map((k) => k.expr)
  if (n < 2) return
  const implied = knownOrder(frame, exprs)
  if (implied.prefix < keys.length) {
    // For few entries, checking the order costs more than it may save.
    const measures = frame.sortedBy.length === 0 || n > FEW_ENTRIES
    const { prefix, suffix } = measures ? yield* presentOrder(frame, keys) : implied
    if (prefix < keys.length) {
      const runKeys = combineKeys(frame, keys.slice(prefix, suffix(prefix)))
      const allKeys = combineKeys(frame, keys.slice(0, suffix(0)))
      const savedPasses = passesOf(q, n, allKeys) - passesOf(q, n, runKeys)
      const runs =
        prefix > 0 && (n > FEW_ENTRIES || savedPasses > 2)
          ? yield* runsOf(frame, keys.slice(0, prefix))
          : null
      const segmented = runs !== null && isCheaper(q, n, runs, runKeys, allKeys)
      const order = radixSort(q, n, segmented ? runKeys : allKeys, segmented ? runs : null)
      q.release(runs?.starts)
      if (order) reorder(frame, order)
    }
  }
  frame.sortedBy = exprs
}

const passesOf = (q: Queue, n: number, keys: readonly Key[]): number =>
  keys.reduce((sum, k) => sum + passCount(q, n, k.bits), 0)

interface PresentOrder {
  readonly prefix: number
  /** The first key from which all keys are in order within runs of equal p leading keys. */
  readonly suffix: (p: number) => number
}

function knownOrder(frame: F, keys: readonly Expr[]): PresentOrder {
  const sortedCount = (prefix: readonly Expr[]): number => frame.sortedPrefix(prefix)
  return {
    prefix: sortedCount(keys),
    suffix: (p) => {
      for (let s = p + 1; s < keys.length; s++) if (sortedCount(keys.slice(s)) === keys.length - s) return s
      return keys.length
    },
  }
}

/** True if sorting within runs is cheaper than sorting everything: short runs need more counters than entries. */
function isCheaper(
  q: Queue,
  n: number,
  runs: Segments,
  runKeys: readonly Key[],
  allKeys: readonly Key[],
): boolean {
  const cost = (keys: readonly Key[], segments: number): number =>
    passesOf(q, n, keys) * costOf(q, n, segments)
  return counterCount(q, n, runs.count) < 2 ** 30 && cost(runKeys, runs.count) < cost(allKeys, 0)
}

function* presentOrder(frame: F, keys: readonly SortKey[]): Coroutine<PresentOrder> {
  const q = queueIn(frame)
  const count = keys.length
  const t = termsOf(
    frame,
    keys.map((k) => k.expr),
  )
  const pairs = keys.flatMap((_, p) => keys.flatMap((_, k) => (k > p ? [[p, k] as const] : [])))
  const cells = q.cells(1 + pairs.length)
  reduce(q, {
    ...t,
    key: `order ${t.key}`,
    n: frame.n,
    op: 'max',
    values: (e) => {
      const current = t.at(e)
      const previous = t.at(before(e))
      const equal = current.map((x, k) => eq(x, previous[k]!))
      /** True if the entry is less than its predecessor by the keys from k on. */
      const isLess = (k: number): Expr =>
        k === count
          ? bool(false)
          : binary(
              'or',
              lt(current[k]!, previous[k]!),
              k + 1 < count ? and(equal[k]!, isLess(k + 1)) : bool(false),
            )
      /** Number of keys from the first differing one on. */
      const remainingKeys = (k: number): Expr =>
        k + 1 >= count ? int(1) : select(equal[k]!, remainingKeys(k + 1), int(count - k))
      const unlessFirst = (x: Expr): Expr => select(isFirst(e), int(0), x)
      return [
        unlessFirst(select(isLess(0), remainingKeys(0), int(0))),
        ...pairs.map(([p, k]) => unlessFirst(flag([...equal.slice(0, p), isLess(k)].reduce(and)))),
      ]
    },
    cells,
  })
  const maxima = yield* numbers(q, cells)
  return {
    prefix: count - maxima[0]!,
    suffix: (p: number): number => {
      const pairIndex = pairs.findIndex(([lead], k) => lead === p && maxima[1 + k] === 0)
      return pairIndex < 0 ? count : pairs[pairIndex]![1]
    },
  }
}

function* runsOf(frame: F, keys: readonly SortKey[]): Coroutine<Segments> {
  const q = queueIn(frame)
  const { n } = frame
  const maxRuns = keys.reduce((size, k) => Math.min(n, size * Math.max(1, k.extent)), 1)
  const starts = q.column(maxRuns + 1, 'i32', 'runs')
  const t = termsOf(
    frame,
    keys.map((k) => k.expr),
  )
  const total = q.cells()
  scan(q, {
    ...t,
    key: `runs ${t.key}`,
    n,
    op: '+',
    columns: { ...t.columns, x_runs: write(starts) },
    value: (e) => flag(differs(t.at, e)),
    body: (e, sum, own) => [
      when(eq(own, int(1)), [store('x_runs', sum, e)]),
      when(eq(next(e), variable('x_n')), [store('x_runs', add(sum, own), next(e))]),
    ],
    total,
  })
  const [count = 0] = yield* numbers(q, total)
  return { starts, count }
}

/** Combines adjacent keys into one number each, as far as they fit 31 bits. */
function combineKeys(frame: F, keys: readonly SortKey[]): Key[] {
  const groups: { exprs: Expr[]; extents: number[]; size: number }[] = []
  for (const { expr, extent } of keys) {
    const last = groups.at(-1)
    const size = Math.max(1, extent)
    if (size === 1) continue
    // Extents are passed as i32, so only a key that is not combined may have 2^31 values.
    if (last && last.size * size < 2 ** 31) {
      last.exprs.push(expr)
      last.extents.push(size)
      last.size *= size
    } else groups.push({ exprs: [expr], extents: [size], size })
  }
  return groups.map(({ exprs, extents, size }) => {
    const t = termsOf(frame, exprs)
    const sizes = Object.fromEntries(extents.map((n, k) => [`x_extent${k}`, n]))
    return {
      key: t.key,
      columns: t.columns,
      sizes: { ...t.sizes, ...sizes },
      bits: Math.ceil(Math.log2(size)),
      value: (e: Expr) =>
        t.at(e).reduce((sum, x, k) => (k === 0 ? x : add(mul(sum, variable(`x_extent${k}`)), x))),
    }
  })
}
