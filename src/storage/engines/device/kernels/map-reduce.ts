/** Maps and reductions over the entries of a frame, as launches. */

import { ENTRY, type Frame } from '../../../../columns/column-engine.ts'
import { type Coroutine, waitFor } from '../../../../columns/coroutines.ts'
import {
  add,
  binary,
  type Expr,
  int,
  load,
  max,
  select,
  sub,
  variable,
} from '../../../../ir/expressions/expr.ts'
import type { Queue } from '../queue/command-queue.ts'
import type { Cells } from '../queue/readback.ts'
import { type Column, next, store, write } from './kernel-builder.ts'
import { termsOf } from './map-fusion.ts'
import { reduce } from './scan.ts'

type F = Frame<Column>

const LARGEST_INT = 2 ** 31 - 1

export function compute(q: Queue, frame: F, name: string, e: Expr): void {
  const t = termsOf(q, frame, [e])
  const out = q.column(frame.n, 'i32', name)
  q.launch({
    ...t,
    key: `compute ${t.key}`,
    threads: frame.n,
    columns: { ...t.columns, x_out: write(out) },
    body: (at) => [store('x_out', at, t.at(at)[0]!)],
  })
  frame.set(name, out)
}

/** Values at one entry. */
export function* valuesAt(q: Queue, frame: F, exprs: readonly Expr[], entry: number): Coroutine<number[]> {
  const cells = q.cells(exprs.length)
  const t = termsOf(q, frame, exprs)
  q.launch({
    ...t,
    key: `at ${t.key}`,
    threads: 1,
    columns: { ...t.columns, x_totals: cells.page },
    sizes: { ...t.sizes, x_at: entry, x_cell: cells.first },
    body: () => t.at(variable('x_at')).map((x, k) => store('x_totals', add(variable('x_cell'), int(k)), x)),
  })
  return yield* numbers(q, cells)
}

/** The maximum of each of `count` non-negative values, at least 0. */
function* maximaOf(
  q: Queue,
  frame: F,
  exprs: readonly Expr[],
  key: string,
  count: number,
  values: (x: readonly Expr[], e: Expr) => readonly Expr[],
): Coroutine<number[]> {
  const t = termsOf(q, frame, exprs)
  const cells = q.cells(count)
  reduce(q, {
    ...t,
    key: `${key} ${t.key}`,
    n: frame.n,
    op: 'max',
    values: (e) => values(t.at(e), e),
    cells,
  })
  return yield* numbers(q, cells)
}

export function* largest(q: Queue, frame: F, e: Expr): Coroutine<number> {
  const [maximum = 0] = yield* maximaOf(q, frame, [e], 'largest', 1, (x) => x)
  return maximum
}

/**
 * Minimum and maximum; the range always includes 0. The least i32 has no negation, so it is encoded as the
 * negation of its successor.
 */
export function* bounds(q: Queue, frame: F, e: Expr): Coroutine<readonly [number, number]> {
  const [hi = 0, lo = 0] = yield* maximaOf(q, frame, [e], 'bounds', 2, ([x]) => [
    x!,
    sub(int(0), max(x!, int(-LARGEST_INT))),
  ])
  return [lo === LARGEST_INT ? -LARGEST_INT - 1 : lo === 0 ? 0 : -lo, hi]
}

/**
 * For each condition, the first entry of the source that satisfies it. One reduction finds the last such entry; the
 * first is searched for only if there is one.
 */
export function* findFirst(q: Queue, frame: F, conditions: readonly Expr[]): Coroutine<number[]> {
  const count = conditions.length
  const last = yield* maximaOf(q, frame, conditions, 'last', count, (x, e) =>
    x.map((c) => select(c, next(e), int(0))),
  )
  const out: number[] = []
  for (const [k, lastEntry] of last.entries())
    out.push(lastEntry > 0 ? yield* earliestEntry(q, frame, conditions[k]!) : -1)
  return out
}

function* earliestEntry(q: Queue, frame: F, condition: Expr): Coroutine<number> {
  if (frame.entry) frame.tables.set('@entries', frame.entry)
  const sourceIndex = frame.entry ? load('@entries', [variable(ENTRY)]) : variable(ENTRY)
  const complement = sub(int(LARGEST_INT), sourceIndex)
  const [maximum = 0] = yield* maximaOf(q, frame, [condition, complement], 'earliest', 1, ([c, x]) => [
    select(c!, x!, int(0)),
  ])
  if (!frame.entry) return LARGEST_INT - maximum
  const isSource = binary('eq', sourceIndex, frame.bindSize(LARGEST_INT - maximum))
  const [position = 0] = yield* maximaOf(q, frame, [isSource], 'place', 1, ([c], e) => [
    select(c!, next(e), int(0)),
  ])
  return position - 1
}

export const numbers = (q: Queue, cells: Cells): Coroutine<number[]> => waitFor(q.numbers(cells))
