/** Maps and reductions over the entries of a frame, as launches. */
import { add, binary, type Expr, int, load, max, select, sub, variable } from '../../../ir/expr.ts'
import { ENTRY, type Frame } from '../../column-engine.ts'
import { type Coroutine, waitFor } from '../../coroutines.ts'
import { type Column, write } from './column-types.ts'
import type { Queue } from './command-queue.ts'
import { next, store } from './kernel-builder.ts'
import { termsOf } from './map-fusion.ts'
import type { Cells } from './readback.ts'
import { reduce } from './scan.ts'

type F = Frame<Column>

const MOST = 2 ** 31 - 1

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
function* mostOf(
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
  const [found = 0] = yield* mostOf(q, frame, [e], 'largest', 1, (x) => x)
  return found
}

/**
 * Minimum and maximum; the range always includes 0. The least i32 has no negation, so it is encoded by that of its
 * successor.
 */
export function* bounds(q: Queue, frame: F, e: Expr): Coroutine<readonly [number, number]> {
  const [hi = 0, lo = 0] = yield* mostOf(q, frame, [e], 'bounds', 2, ([x]) => [
    x!,
    sub(int(0), max(x!, int(-MOST))),
  ])
  return [lo === MOST ? -MOST - 1 : lo === 0 ? 0 : -lo, hi]
}

/**
 * For each condition, the first entry of the source that satisfies it. One reduction finds the last such entry; the
 * first is searched for only if there is one.
 */
export function* first(q: Queue, frame: F, conditions: readonly Expr[]): Coroutine<number[]> {
  const count = conditions.length
  const last = yield* mostOf(q, frame, conditions, 'last', count, (x, e) =>
    x.map((c) => select(c, next(e), int(0))),
  )
  const out: number[] = []
  for (const [k, found] of last.entries())
    out.push(found > 0 ? yield* earliest(q, frame, conditions[k]!) : -1)
  return out
}

function* earliest(q: Queue, frame: F, condition: Expr): Coroutine<number> {
  if (frame.entry) frame.tables.set('@entries', frame.entry)
  const of = frame.entry ? load('@entries', [variable(ENTRY)], 'i32') : variable(ENTRY)
  const rest = sub(int(MOST), of)
  const [least = 0] = yield* mostOf(q, frame, [condition, rest], 'earliest', 1, ([c, x]) => [
    select(c!, x!, int(0)),
  ])
  if (!frame.entry) return MOST - least
  const at = binary('eq', of, frame.sized(MOST - least))
  const [found = 0] = yield* mostOf(q, frame, [at], 'place', 1, ([c], e) => [select(c!, next(e), int(0))])
  return found - 1
}

export const numbers = (q: Queue, cells: Cells): Coroutine<number[]> => waitFor(q.numbers(cells))
