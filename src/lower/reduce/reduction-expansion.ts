/**
 * Expansion of reductions into load, combine and store; lane reductions become warp shuffles (butterfly). Invariant reached: the only
 * remaining reductions are atomic updates of one element.
 */

import type { Names } from '../../ir/expressions/bound-names.ts'
import { cast, type Expr, load, variable } from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import type { Lanes, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { define, store } from '../../ir/statements/statement-builders.ts'
import { type Body, rewriteStmts } from '../../ir/statements/tree.ts'

export function expandReductions(body: Body, names: Names): Body {
  return rewriteStmts(body, {
    stmt: (s) => {
      if (s.kind !== 'reduce' || s.atomic) return undefined
      return s.lanes ? exchange(s, s.lanes, names) : combine(s, names)
    },
  })
}

function exchange(r: Reduce, lanes: Lanes, names: Names): Stmt[] {
  const out: Stmt[] = []
  for (let xor = lanes.first ?? 1; xor < lanes.width; xor *= 2) {
    const others = r.values.map((value) =>
      define(names.fresh('other'), value, {
        lane: { xor, among: lanes.among },
        span: r.span,
      }),
    )
    const values = others.map((o) => variable(o.name, o.dtype))
    out.push(...others, ...combine({ ...r, values }, names))
  }
  return out
}

function combine(r: Reduce, names: Names): Stmt[] {
  const map = new Map<string, Expr>()
  r.targets.forEach((t, k) => {
    map.set(r.reducer.left[k]!.name, cast(load(t.buffer, t.index, t.dtype), r.reducer.left[k]!.dtype))
    map.set(r.reducer.right[k]!.name, cast(r.values[k]!, r.reducer.right[k]!.dtype))
  })
  const results = r.reducer.result.map((e, k) => cast(substitute(e, map), r.targets[k]!.dtype))
  const set = (k: number, value: Expr): Stmt =>
    store(r.targets[k]!.buffer, r.targets[k]!.index, value, { span: r.span })
  if (results.length === 1) return [set(0, results[0]!)]
  // All components are computed before the first is replaced.
  const lets = results.map((value) => define(names.fresh('next'), value, { span: r.span }))
  return [...lets, ...lets.map((l, k) => set(k, variable(l.name, l.dtype)))]
}
