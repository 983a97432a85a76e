/**
 * Invariant reached: a loop that searches, in every iteration, for a place that only moves forward goes on from where
 * it was: one bisection before the loop, and a step for each segment that it enters.
 */
import {
  bool,
  type Expr,
  freeVars,
  int,
  keyOf,
  load,
  mentions,
  type Search,
  search,
  substitute,
  walkExpr,
} from '../ir/expr.ts'
import { linear } from '../ir/linear.ts'
import type { Buffer, For, Kernel2, Stmt } from '../ir/loops.ts'
import {
  accessesOf,
  type Body,
  boundVarsOf,
  exprsOf,
  mapSame,
  rewriteStmts,
  stmt,
  walkStmts,
  writesOf,
} from '../ir/tree.ts'
import type { Names } from './names.ts'
import { namesOf } from './names-of.ts'

export function advanceSearches(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const written = writesOf(kernel.body)
  const body = mapSame(kernel.body, (top) => {
    // Inner loops first: where one of them starts is searched for by the loops around it.
    const [done] = rewriteStmts([top], {
      stmt: (s) => (s.kind === 'for' ? advanced(s, written, names) : undefined),
    })
    return done!
  })
  return body === kernel.body ? kernel : { ...kernel, body }
}

function advanced(loop: For, written: ReadonlySet<string>, names: Names): Stmt | undefined {
  if (loop.cooperative || (loop.mode.kind !== 'serial' && loop.mode.kind !== 'unroll')) return undefined
  const found = ascending(loop, written)
  if (found.length === 0) return undefined
  const places = new Map<string, Expr>()
  const before: Stmt[] = []
  const first: Stmt[] = []
  for (const s of found) {
    const buffer: Buffer = {
      name: names.fresh('place'),
      dtype: 'i32',
      scope: 'register',
      role: 'local',
      shape: [int(1)],
      fill: 0,
      accumulate: 'i32',
    }
    const place = load(buffer.name, [int(0)], 'i32')
    const set = (value: Expr): Stmt => stmt({ kind: 'store', buffer: buffer.name, index: [int(0)], value })
    before.push(stmt({ kind: 'alloc', buffer }), set(substitute(s, new Map([[loop.var, int(0)]]))))
    first.push(set(search('next', s.buffer, place, s.hi, s.value)))
    places.set(keyOf(s), place)
  }
  const body = rewriteStmts(loop.body, {
    expr: (e) => (e.kind === 'search' ? places.get(keyOf(e)) : undefined),
  })
  const whole: Body = [...before, stmt({ ...loop, body: [...first, ...body] })]
  return stmt({ kind: 'if', cond: bool(true), then: whole, else: [] })
}

/** The searches inside whose place does not go back from one iteration to the next. */
function ascending(loop: For, written: ReadonlySet<string>): readonly Search[] {
  const bound = boundVarsOf(loop.body)
  const out = new Map<string, Search>()
  walkStmts(loop.body, (s) => {
    for (const e of exprsOf(s))
      walkExpr(e, (x) => {
        if (x.kind !== 'search' || x.method !== 'upper' || !mentions(x.value, loop.var)) return
        if (mentions(x.lo, loop.var) || mentions(x.hi, loop.var)) return
        if ([...freeVars(x)].some((v) => bound.has(v)) || written.has(x.buffer)) return
        const reads = accessesOf([{ kind: 'let', name: '', dtype: 'i32', value: x }])
        if (reads.some((a) => written.has(a.buffer))) return
        const own = [...linear(x.value).terms.values()].filter((t) => mentions(t.term, loop.var))
        if (own.every((t) => t.term.kind === 'var' && t.coefficient > 0)) out.set(keyOf(x), x)
      })
  })
  return [...out.values()]
}
