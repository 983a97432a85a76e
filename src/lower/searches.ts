/**
 * Invariant reached: no `search` is left; each is a bisection (or a scan, where it is near or there is no order) that runs
 * just before the statement that needs its result. Searching has no effect, so it may run where its result is then not
 * used; but what its bounds are read at may be real only where the conditions before it hold, so it stays inside of them.
 */
import { alloc, place, store, when } from '../ir/build.ts'
import {
  add,
  all,
  binary,
  conjuncts,
  type Expr,
  int,
  load,
  lt,
  type Search,
  sub,
  variable,
} from '../ir/expr.ts'
import { rewriteExpr, someExpr } from '../ir/expr-tree.ts'
import { keyOf } from '../ir/keys.ts'
import type { If, Stmt } from '../ir/loops.ts'
import { type Body, exprsOf, mapExprs, rewriteStmts, stmt } from '../ir/tree.ts'
import type { Names } from './names.ts'

export function lowerSearches(body: Body, names: Names): Body {
  return rewriteStmts(body, {
    stmt: (s) => {
      if (!exprsOf(s).some(searches)) return undefined
      if (s.kind === 'if' && s.else.length === 0) {
        const terms = conjuncts(s.cond)
        const first = terms.findIndex((t, k) => k > 0 && searches(t))
        if (first > 0) {
          const inner = stmt<If>({ ...s, cond: all(terms.slice(first)) })
          return lowerSearches([when(all(terms.slice(0, first)), [inner])], names)
        }
      }
      const before: Stmt[] = []
      const done = new Map<string, Expr>()
      const replaced = mapExprs(s, (e) =>
        rewriteExpr(e, (x) => {
          if (x.kind !== 'search') return undefined
          const known = done.get(keyOf(x))
          if (known) return known
          const result = s.kind === 'let' && s.value === x ? s.name : names.fresh('found')
          const at = variable(result)
          before.push(...emit(x, result, names))
          done.set(keyOf(x), at)
          return at
        }),
      )
      // `let x = search` is the search's own result.
      if (replaced.kind === 'let' && replaced.value.kind === 'var' && replaced.value.name === replaced.name)
        return before
      return [...before, replaced]
    },
  })
}

const searches = (e: Expr): boolean => someExpr(e, (x) => x.kind === 'search')

function emit(s: Search, result: string, names: Names): Stmt[] {
  const lo = names.fresh('lo')
  const hi = names.fresh('hi')
  const get = (b: string): Expr => load(b, [int(0)], 'i32')
  const set = (b: string, value: Expr): Stmt => store(b, [int(0)], value)
  const declare = (b: string, value: Expr): Stmt[] => [alloc(place(b, s.hi)), set(b, value)]
  const at = (p: Expr): Expr => load(s.buffer, [p], s.value.dtype)
  const loop = (body: readonly Stmt[], cond: Expr): Stmt => stmt({ kind: 'while', cond, body })
  const end: Stmt = stmt({ kind: 'let', name: result, dtype: 'i32', value: get(lo) })
  if (s.method === 'linear' || s.method === 'next') {
    const differs = binary(s.method === 'next' ? 'le' : 'ne', at(get(lo)), s.value)
    const further = binary('and', lt(get(lo), s.hi), differs)
    return [...declare(lo, s.lo), loop([set(lo, add(get(lo), int(1)))], further), end]
  }
  const mid = names.fresh('mid')
  const m = variable(mid)
  const goRight = binary(s.method === 'lower' ? 'lt' : 'le', at(m), s.value)
  return [
    ...declare(lo, s.lo),
    ...declare(hi, s.hi),
    loop(
      [
        stmt({
          kind: 'let',
          name: mid,
          dtype: 'i32',
          value: add(get(lo), binary('quo', sub(get(hi), get(lo)), int(2))),
        }),
        when(goRight, [set(lo, add(m, int(1)))], [set(hi, m)]),
      ],
      lt(get(lo), get(hi)),
    ),
    end,
  ]
}
