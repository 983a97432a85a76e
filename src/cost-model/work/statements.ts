/** Reads, operations and dependencies of statements, memoised. */

import type { Expr, Load, Search } from '../../ir/expressions/expr.ts'
import { children, walkExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { memoize } from '../../ir/memoize.ts'
import type { For, If, Reduce, Store } from '../../ir/statements/loops.ts'
import { isFloat } from '../../ir/values/dtype.ts'
import { combining, operationsIn } from '../../run/explain/work-counters.ts'
import { collectSegments, type Segment } from './estimates.ts'

/** Distinct loads and searches of a statement's expressions. */
export const readsOf = memoize((s: Store | Reduce): readonly (Load | Search)[] => {
  const reads = new Map<string, Load | Search>()
  const collect = (e: Expr): void =>
    walkExpr(e, (x) => {
      if (x.kind === 'load' || x.kind === 'search') reads.set(keyOf(x), x)
    })
  if (s.kind === 'store') for (const e of [...s.index, s.value]) collect(e)
  else for (const e of [...s.targets.flatMap((t) => t.index), ...s.values]) collect(e)
  return [...reads.values()]
})

/** Operations of floats in one execution of a statement, with calls of functions such as `exp`, and these calls alone. */
export const operationsOf = memoize(
  (s: Store | Reduce): { readonly n: number; readonly functions: number } => {
    const values = s.kind === 'store' ? [s.value] : s.values
    const functions = (e: Expr): number =>
      (e.kind === 'call' && isFloat(e.dtype) ? 1 : 0) + children(e).reduce((n, x) => n + functions(x), 0)
    return {
      n: values.reduce((n, v) => n + operationsIn(v), 0) + (s.kind === 'store' ? 0 : combining(s)),
      functions: values.reduce((n, v) => n + functions(v), 0),
    }
  },
)

/** Segments on whose lengths the extent or conditions of a statement depend. */
export const segmentsOf = memoize((s: For | If): readonly Segment[] => {
  const exprs = s.kind === 'for' ? [s.extent, ...s.guards] : [s.cond]
  return [...new Map(exprs.flatMap(collectSegments).map((x) => [x.key, x])).values()]
})
