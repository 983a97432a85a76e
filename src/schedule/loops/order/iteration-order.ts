/** Permutations of the iterations of a loop whose order is free (`serpentine`, `reverse`). */

import { type Expr, variable } from '../../../ir/expressions/expr.ts'
import { substitute } from '../../../ir/expressions/expr-tree.ts'
import { substituteStmts } from '../../../ir/statements/bindings.ts'
import { replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For } from '../../../ir/statements/loops.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { checkOrderFree, checkSerial } from '../../legality/checks.ts'
import type { Outcome } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'

/**
 * Replaces the number of each iteration by `permuted` of it, a permutation of `0..extent`; the guards move along.
 * Iterations of a bound loop have no order, so the loop may be bound already. Throws `schedule/order-matters` or
 * `schedule/not-serial`.
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
