/** Reads, operations and dependencies of statements, memoised. */

import { isFloat } from '../../ir/dtype.ts'
import type { Expr, Load, Search } from '../../ir/expr.ts'
import { children, walkExpr } from '../../ir/expr-tree.ts'
import type { For, If, Reduce, Store } from '../../ir/loops.ts'
import { remembered } from '../../ir/remembered.ts'
import { combining, operationsIn } from '../../run/explain/work-counters.ts'
import { accessKey, type Segment, segmentsIn } from './estimates.ts'

/** Loads and searches of expressions, each once. */
export const readsIn = remembered((s: Store | Reduce): readonly (Load | Search)[] => {
  const out = new Map<string, Load | Search>()
  const take = (e: Expr): void =>
    walkExpr(e, (x) => {
      if (x.kind === 'load' || x.kind === 'search') out.set(accessKey(x), x)
    })
  if (s.kind === 'store') for (const e of [...s.index, s.value]) take(e)
  else for (const e of [...s.targets.flatMap((t) => t.index), ...s.values]) take(e)
  return [...out.values()]
})

/** Of one execution of a statement. */
export interface Operations {
  readonly n: number
  /** Those of them that are functions, such as `exp`. */
  readonly functions: number
}

export const operationsOf = remembered((s: Store | Reduce): Operations => {
  const values = s.kind === 'store' ? [s.value] : s.values
  const functions = (e: Expr): number =>
    (e.kind === 'call' && isFloat(e.dtype) ? 1 : 0) + children(e).reduce((n, x) => n + functions(x), 0)
  return {
    n: values.reduce((n, v) => n + operationsIn(v), 0) + (s.kind === 'store' ? 0 : combining(s)),
    functions: values.reduce((n, v) => n + functions(v), 0),
  }
})

/** Segments whose lengths its extent or conditions depend on. */
export const segmentsOf = remembered((s: For | If): readonly Segment[] => {
  const exprs = s.kind === 'for' ? [s.extent, ...s.guards] : [s.cond]
  return [...new Map(exprs.flatMap(segmentsIn).map((x) => [x.key, x])).values()]
})
