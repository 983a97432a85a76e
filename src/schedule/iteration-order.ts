/** The same iterations of a loop in another order, which must be free (`serpentine`, `reverse`). */
import { substituteStmts } from '../ir/bindings.ts'
import { replaceLoop } from '../ir/definitions.ts'
import { type Expr, variable } from '../ir/expr.ts'
import { substitute } from '../ir/expr-tree.ts'
import type { For } from '../ir/loops.ts'
import { stmt } from '../ir/tree.ts'
import { checkOrderFree, checkSerial } from './checks.ts'
import type { Context } from './context.ts'
import type { Outcome } from './primitive.ts'

/**
 * In the place of each iteration runs the one that `permuted` makes of its number: a permutation of `0..extent`, under whose
 * guards each runs as before. Iterations have no order where they are bound, so a loop may be bound before.
 */
export function permuteIterations(
  cx: Context,
  loop: For,
  verb: string,
  permuted: (at: Expr) => Expr,
): Outcome {
  if (loop.mode.kind !== 'bind') checkSerial(cx, loop, verb)
  checkOrderFree(cx, loop, verb)
  const other = new Map([[loop.var, permuted(variable(loop.var))]])
  return {
    body: replaceLoop(cx.kernel.body, loop.var, (l) =>
      stmt<For>({
        ...l,
        guards: l.guards.map((g) => substitute(g, other)),
        body: substituteStmts(l.body, other),
      }),
    ),
  }
}
