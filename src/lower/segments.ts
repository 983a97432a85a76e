/**
 * Invariant reached: no loop has the mode `accumulate`. What such a loop combines into an element goes to registers
 * as long as the element stays the same, and to the element where it changes and at the end: neighbouring iterations
 * mostly have one element, so most updates never leave the thread (segmented reduction; Merrill and Garland,
 * "Merge-based parallel sparse matrix-vector multiplication", SC 2016, has it for whole rows).
 *
 * The element is known by the part of its index that changes with the loop; a part that nothing has says that
 * registers hold nothing yet.
 */
import {
  add,
  and,
  binary,
  bool,
  constant,
  type Expr,
  int,
  type Load,
  load,
  substitute,
  variable,
} from '../ir/expr.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../ir/loops.ts'
import { segmentsOf } from '../ir/segments.ts'
import { type Body, mapSame, replaceStmt, rewriteStmts, stmt } from '../ir/tree.ts'
import type { Names } from './names.ts'
import { namesOf } from './names-of.ts'

/** A part of an index that no element has. */
const NONE = int(-2147483648)

export function accumulateSegments(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const body = mapSame(kernel.body, (top) => {
    const [done] = rewriteStmts([top], {
      stmt: (s) => (s.kind === 'for' && s.mode.kind === 'accumulate' ? accumulated(s, names) : undefined),
    })
    return done!
  })
  return body === kernel.body ? kernel : { ...kernel, body }
}

/** One statement, so that what belongs together stays in one launch at the top. */
function accumulated(marked: For, names: Names): Stmt {
  const loop: For = stmt({ ...marked, mode: { kind: 'serial' } })
  const segments = segmentsOf(loop)
  if (typeof segments === 'string') return loop
  const { reduce, inner, parts, rest } = segments
  const local = (name: string, dtype: Buffer['dtype'], shape: readonly Expr[]): Buffer => ({
    name: names.fresh(name),
    dtype,
    scope: 'register',
    role: 'local',
    shape: shape.length > 0 ? shape : [int(1)],
    fill: 0,
    accumulate: dtype,
  })
  const sums = reduce.targets.map((t) =>
    local(
      `${t.buffer}_sum`,
      t.dtype,
      inner.map((l) => l.extent),
    ),
  )
  const places = parts.map((_, k) =>
    local(`${reduce.targets[0]!.buffer}_place${k === 0 ? '' : k}`, 'i32', []),
  )
  const place = places.map((b) => load(b.name, [int(0)], 'i32'))
  const sumAt = (k: number, map: ReadonlyMap<string, Expr>): Load => {
    const b = sums[k]!
    const index = inner.map((l) => substitute(variable(l.var), map))
    return load(b.name, index.length > 0 ? index : [int(0)], b.dtype)
  }
  const clear = (map: ReadonlyMap<string, Expr>): Stmt[] =>
    sums.map((b, k) => {
      const e = reduce.reducer.identity[k]!
      const value = e.kind === 'const' ? constant(e.value, b.dtype) : e
      return stmt({ kind: 'store', buffer: b.name, index: sumAt(k, map).index, value })
    })
  const setPlaces = (values: readonly Expr[]): Stmt[] =>
    places.map((b, k) => stmt({ kind: 'store', buffer: b.name, index: [int(0)], value: values[k]! }))
  const flush = (map: ReadonlyMap<string, Expr>): Stmt =>
    stmt<Reduce>({
      ...reduce,
      targets: reduce.targets.map((t, k) =>
        load(
          t.buffer,
          rest[k]!.map(({ part, more }) => {
            const same = substitute(more, map)
            return part === undefined ? same : add(place[part]!, same)
          }),
          t.dtype,
          t.span,
        ),
      ),
      values: sums.map((_, k) => sumAt(k, map)),
    })
  const held = binary('ne', place[0]!, NONE)
  const differs = parts.map((p, k) => binary('ne', place[k]!, p)).reduce((a, b) => binary('or', a, b))
  const when = (cond: Expr, then: Body): Stmt => stmt({ kind: 'if', cond, then, else: [] })
  const own: Reduce = stmt({ ...reduce, atomic: false, targets: sums.map((_, k) => sumAt(k, new Map())) })
  const body: Body = [
    when(
      and(held, differs),
      nest(inner, names, true, (map) => [flush(map), ...clear(map)]),
    ),
    ...setPlaces(parts),
    ...replaceStmt(loop.body, reduce, () => own),
  ]
  const whole: Body = [
    ...[...sums, ...places].map((buffer): Stmt => stmt({ kind: 'alloc', buffer })),
    ...nest(inner, names, false, clear),
    ...setPlaces(places.map(() => NONE)),
    stmt({ ...loop, body }),
    when(
      held,
      nest(inner, names, true, (map) => [flush(map)]),
    ),
  ]
  return when(bool(true), whole)
}

/** Copies of loops around what `make` gives for the copies' variables. */
function nest(
  loops: readonly For[],
  names: Names,
  guarded: boolean,
  make: (map: ReadonlyMap<string, Expr>) => Body,
): Body {
  const map = new Map<string, Expr>()
  const copies = loops.map((l): For => {
    const name = names.fresh(l.var)
    map.set(l.var, variable(name))
    return {
      ...l,
      var: name,
      reduce: false,
      extent: substitute(l.extent, map),
      guards: guarded ? l.guards.map((g) => substitute(g, map)) : [],
    }
  })
  return copies.reduceRight<Body>((body, l) => [stmt({ ...l, body })], make(map))
}
