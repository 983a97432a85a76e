/** Sort keys from expressions, with their ranges. */
import { boundsOf } from '../analysis/integers/ranges.ts'
import { add, type Expr } from '../ir/expr.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'
import type { SortKey } from './engine-operands.ts'

/** Expressions as keys from 0 on; what is not known of their values is measured. */
export function* keysOf<C extends Column>(frame: Frame<C>, exprs: readonly Expr[]): Coroutine<SortKey[]> {
  const keys: SortKey[] = []
  for (const [k, expr] of exprs.entries()) {
    const known = boundsOf(expr, (name) => frame.range(name))
    const [lo, hi] = known ? [known.lo, known.hi] : yield* frame.engine.bounds(frame, expr)
    if (lo >= 0) keys.push({ expr, extent: hi + 1 })
    else keys.push({ expr: add(expr, frame.sized(-lo, `@least ${k}`)), extent: hi - lo + 1 })
  }
  return keys
}
