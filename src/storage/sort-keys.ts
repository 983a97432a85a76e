/** Sort keys from expressions, with their ranges. */
import { HIGHEST } from '../analysis/integers/interval.ts'
import { add, call, type Expr, int, lt, select } from '../ir/expr.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'
import type { SortKey, Unmeasured } from './engine-operands.ts'
import { boundsIn } from './expression-bounds.ts'

/** Expressions as non-negative keys, one or two for each; unknown ranges are measured. */
export const keysOf = <C extends Column>(frame: Frame<C>, exprs: readonly Expr[]): Coroutine<SortKey[]> =>
  measured(
    frame,
    exprs.map((expr) => ({ expr })),
  )

/** `keysOf` for expressions some of which have a known extent. */
export function* measured<C extends Column>(
  frame: Frame<C>,
  all: readonly Unmeasured[],
): Coroutine<SortKey[]> {
  const keys: SortKey[] = []
  for (const [k, { expr, extent }] of all.entries()) {
    if (extent !== undefined) {
      keys.push({ expr, extent })
      continue
    }
    const known = boundsIn(frame, expr)
    const [lo, hi] = known?.fits ? [known.lo, known.hi] : yield* frame.engine.bounds(frame, expr)
    if (lo >= 0) keys.push({ expr, extent: hi + 1 })
    // If the range exceeds 31 bits: one key for the sign, and one for the other 31 bits.
    else if (Math.max(0, hi) - lo >= HIGHEST)
      keys.push(
        { expr: select(lt(expr, int(0)), int(0), int(1)), extent: 2 },
        { expr: call('bit_and', [expr, int(HIGHEST)]), extent: HIGHEST + 1 },
      )
    else keys.push({ expr: add(expr, frame.sized(-lo, `@least ${k}`)), extent: hi - lo + 1 })
  }
  return keys
}
