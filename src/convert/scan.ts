/** Exclusive scans and reductions over columns of i32: each thread runs through a chunk, chunks are scanned in turn. */
import { add, div, type Expr, eq, int, max, min, mod, mul, sub, variable } from '../ir/expr.ts'
import type { Stmt } from '../ir/loops.ts'
import { get, loop, scalar, store, when } from './kernel.ts'
import { type Column, type LaunchSpec, type Queue, read, THREADS, update, write } from './queue.ts'

/** Elements of one thread. */
const CHUNK = 16
/** Elements of one thread where order does not matter: threads take turns, so that neighbours read neighbours. */
const STRIDES = 64

interface Over extends Pick<LaunchSpec, 'key' | 'columns' | 'sizes'> {
  readonly n: number
}

export interface Scan extends Over {
  /** `max`: of values that are not negative. Both start at 0. */
  readonly op: '+' | 'max'
  readonly value: (e: Expr) => Expr
  /** Where it holds, a new segment begins: the scan starts over. */
  readonly reset?: (e: Expr) => Expr
  /** What is done at `e`, given the scan of the elements before it (of its segment) and its own value. */
  readonly body: (e: Expr, before: Expr, value: Expr) => readonly Stmt[]
  /** Cell for the scan of everything (of the last segment). */
  readonly total?: number | undefined
}

const combine = (op: Scan['op'], a: Expr, b: Expr): Expr => (op === '+' ? add(a, b) : max(a, b))

/** O(n) work in a logarithmic number of launches. `body` may overwrite what `value` reads at the same element. */
export function scan(q: Queue, s: Scan): void {
  run(q, s, false)
}

/** `carry`: `body` gets what the elements before left, whether or not a segment begins at `e`. */
function run(q: Queue, s: Scan, carry: boolean): void {
  const { n, op, reset, total } = s
  const chunks = Math.ceil(n / CHUNK)
  const sums = chunks > 1 ? q.column(chunks, 'i32', 'sums') : null
  const resets = sums && reset ? q.column(chunks, 'i32', 'resets') : null
  const sizes = { ...s.sizes, x_n: n }
  const key = `${s.key} ${op}`
  if (sums) {
    q.launch({
      key: `${key} up`,
      threads: chunks,
      columns: {
        ...s.columns,
        x_sums: write(sums),
        ...(resets ? { x_resets: write(resets) } : {}),
      },
      sizes,
      body: (t) => {
        const sum = scalar('x_sum', int(0))
        const any = scalar('x_any', int(0))
        return [
          ...sum.declare,
          ...(reset ? any.declare : []),
          over(t, (e) => [
            ...(reset ? [when(reset(e), [sum.set(int(0)), any.set(int(1))])] : []),
            sum.set(combine(op, sum.value, s.value(e))),
          ]),
          store('x_sums', t, sum.value),
          ...(reset ? [store('x_resets', t, any.value)] : []),
        ]
      },
    })
    run(
      q,
      {
        key: 'sums',
        n: chunks,
        op,
        columns: { x_part: update(sums), ...(resets ? { x_starts: read(resets) } : {}) },
        value: (e) => get('x_part', e),
        ...(resets ? { reset: (e: Expr) => eq(get('x_starts', e), int(1)) } : {}),
        body: (e, before) => [store('x_part', e, before)],
      },
      true,
    )
  }
  q.launch({
    key: `${key} down ${sums ? 'many' : 'one'} ${carry}`,
    threads: Math.max(1, chunks),
    columns: {
      ...s.columns,
      ...(sums ? { x_sums: read(sums) } : {}),
      ...(total === undefined ? {} : { x_totals: q.totals }),
    },
    sizes: { ...sizes, ...(total === undefined ? {} : { x_cell: total, x_last: Math.max(0, chunks - 1) }) },
    body: (t) => {
      const sum = scalar('x_sum', sums ? get('x_sums', t) : int(0))
      const value = scalar('x_value', int(0))
      const restart = (e: Expr): Stmt[] => (reset ? [when(reset(e), [sum.set(int(0))])] : [])
      return [
        ...sum.declare,
        ...value.declare,
        over(t, (e) => [
          value.set(s.value(e)),
          ...(carry ? [] : restart(e)),
          ...s.body(e, sum.value, value.value),
          ...(carry ? restart(e) : []),
          sum.set(combine(op, sum.value, value.value)),
        ]),
        ...(total === undefined
          ? []
          : [when(eq(t, variable('x_last')), [store('x_totals', variable('x_cell'), sum.value)])]),
      ]
    },
  })
  q.release(sums, resets)
}

/** The elements of chunk `t`. */
const over = (t: Expr, body: (e: Expr) => readonly Stmt[]): Stmt => {
  const lo = mul(t, int(CHUNK))
  return loop('x_k', min(int(CHUNK), sub(variable('x_n'), lo)), (k) => body(add(lo, k)))
}

export interface Reduction extends Over {
  /** `max`: of values that are not negative. Both start at 0. */
  readonly op: '+' | 'max'
  readonly values: (e: Expr) => readonly Expr[]
  /** How many values there are, and the first of as many cells. */
  readonly count: number
  readonly cells: number
}

/** Several reductions over the same elements. */
export function reduce(q: Queue, r: Reduction): void {
  const { n, op, count } = r
  let m = Math.ceil(n / STRIDES)
  if (m <= 1) {
    last(q, r)
    return
  }
  let partial = q.column(m * count, 'i32', 'partial')
  q.launch({
    key: `${r.key} ${op} first`,
    threads: m,
    columns: { ...r.columns, x_out: write(partial) },
    sizes: { ...r.sizes, x_n: n },
    body: (t) => {
      const threads = variable(THREADS)
      const sums = Array.from({ length: count }, (_, j) => scalar(`x_sum${j}`, int(0)))
      return [
        ...sums.flatMap((s) => s.declare),
        strided(t, threads, variable('x_n'), (e) =>
          r.values(e).map((v, j) => sums[j]!.set(combine(op, sums[j]!.value, v))),
        ),
        ...sums.map((s, j) => store('x_out', add(mul(int(j), threads), t), s.value)),
      ]
    },
  })
  const rest = (of: Column, length: number): Reduction => ({
    key: `partial ${count}`,
    n: length,
    op,
    count,
    cells: r.cells,
    columns: { x_in: read(of) },
    values: (e) => Array.from({ length: count }, (_, j) => get('x_in', add(mul(int(j), variable('x_n')), e))),
  })
  while (m > STRIDES) {
    const fewer = Math.ceil(m / STRIDES)
    const out = q.column(fewer * count, 'i32', 'partial')
    const from = rest(partial, m)
    q.launch({
      key: `${from.key} ${op} next`,
      threads: fewer * count,
      columns: { ...from.columns, x_out: write(out) },
      sizes: { x_n: m, x_fewer: fewer },
      body: (x) => {
        const sum = scalar('x_sum', int(0))
        const n = variable('x_n')
        const of = variable('x_fewer')
        return [
          ...sum.declare,
          strided(mod(x, of), of, n, (e) => [
            sum.set(combine(op, sum.value, get('x_in', add(mul(div(x, of), n), e)))),
          ]),
          store('x_out', x, sum.value),
        ]
      },
    })
    q.release(partial)
    partial = out
    m = fewer
  }
  last(q, rest(partial, m))
  q.release(partial)
}

/** What is left, in one thread. */
function last(q: Queue, r: Reduction): void {
  q.launch({
    key: `${r.key} ${r.op} last`,
    threads: 1,
    columns: { ...r.columns, x_totals: q.totals },
    sizes: { ...r.sizes, x_n: r.n, x_cell: r.cells },
    body: () => {
      const sums = Array.from({ length: r.count }, (_, j) => scalar(`x_sum${j}`, int(0)))
      return [
        ...sums.flatMap((s) => s.declare),
        loop('x_k', variable('x_n'), (e) =>
          r.values(e).map((v, j) => sums[j]!.set(combine(r.op, sums[j]!.value, v))),
        ),
        ...sums.map((s, j) => store('x_totals', add(variable('x_cell'), int(j)), s.value)),
      ]
    },
  })
}

/** Every `threads`-th element from `t` on, below n. */
const strided = (t: Expr, threads: Expr, n: Expr, body: (e: Expr) => readonly Stmt[]): Stmt =>
  loop('x_k', div(add(sub(n, t), sub(threads, int(1))), threads), (k) => body(add(t, mul(k, threads))))
