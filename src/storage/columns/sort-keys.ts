/** Sort keys from expressions, with their ranges. */
import { HIGHEST } from '../../analysis/integers/interval.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { Coroutine } from '../../columns/coroutines.ts'
import type { OpenSortKey, SortKey } from '../../columns/engine-operands.ts'
import { add, call, type Expr, int, lt, select } from '../../ir/expressions/expr.ts'
import { boundsIn } from './expression-bounds.ts'

/** Expressions as non-negative keys, one or two for each; unknown ranges are measured. */
export const keysOf = <C extends Column>(frame: Frame<C>, exprs: readonly Expr[]): Coroutine<SortKey[]> =>
  measureKeys(
    frame,
    exprs.map((expr) => ({ expr })),
  )

/** `keysOf` for expressions some of which have a known extent. */
export function* measureKeys<C extends Column>(
  frame: Frame<C>,
  partialKeys: readonly OpenSortKey[],
): Coroutine<SortKey[]> {
  const keys: SortKey[] = []
  for (const [k, { expr, extent }] of partialKeys.entries()) {
    if (extent !== undefined) {
      keys.push({ expr, extent })
      continue
    }
    const bounds = boundsIn(frame, expr)
    const [lo, hi] = bounds?.fits ? [bounds.lo, bounds.hi] : yield* frame.engine.bounds(frame, expr)
    if (lo >= 0) keys.push({ expr, extent: hi + 1 })
    // If the range exceeds 31 bits: one key for the sign, and one for the other 31 bits.
    else if (Math.max(0, hi) - lo >= HIGHEST)
      keys.push(
        { expr: select(lt(expr, int(0)), int(0), int(1)), extent: 2 },
        { expr: call('bit_and', [expr, int(HIGHEST)]), extent: HIGHEST + 1 },
      )
    else keys.push({ expr: add(expr, frame.bindSize(-lo, `@least ${k}`)), extent: hi - lo + 1 })
  }
  return keys
}
