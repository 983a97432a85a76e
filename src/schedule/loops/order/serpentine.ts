/** Serpentine (boustrophedon) order of iterations, which balances the load of blocks (`serpentine`). */
import type { Expr } from '../../../ir/expressions/expr.ts'
import { add, div, eq, int, min, mod, mul, select, sub, variable } from '../../../ir/expressions/expr.ts'
import { substitute } from '../../../ir/expressions/expr-tree.ts'
import { substituteStmts } from '../../../ir/statements/bindings.ts'
import { replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For } from '../../../ir/statements/loops.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { checkFactor, checkOrderFree, checkSerial } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { type Outcome, primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'

// Permutations of the iterations of a loop whose order is free (`serpentine`, `reverse`).

/**
 * Replaces the number of each iteration by `permuted` of it, a permutation of `0..extent`; the guards move along.
 * Iterations of a bound loop have no order, so the loop may be bound already. Throws `schedule/order-matters` or
 * `schedule/not-serial`.
 */
function permuteIterations(cx: Context, loop: For, verb: string, permuted: (at: Expr) => Expr): Outcome {
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

/**
 * `serpentine i by c`: iterations form lots of `c`, and every second lot runs backwards (also the last, shorter lot).
 * An early and a late iteration then have the same position in consecutive lots. If iterations are sorted by duration,
 * blocks that share a multiprocessor have equal amounts of work together. Only the order of iterations changes. The
 * order must be free, so a loop may be bound before. Lots of one iteration leave the loop unchanged.
 */
export const serpentine = primitive({
  word: 'serpentine',
  call: "serpentine('i', 4)",
  takes: [arg.loop('loop'), 'by', arg.integer('by')],
  given: (loop: LoopRef, by: number) => ({ loop, by }),
  apply(cx, step) {
    const { loop } = cx.loop(step.loop)
    checkFactor(cx, step.by, 'the number of iterations before a serpentine turns', loop)
    return permuteIterations(cx, loop, 'serpentine', (at) => {
      if (step.by === 1) return at
      const lot = div(at, int(step.by))
      const first = mul(lot, int(step.by))
      const end = min(add(first, int(step.by)), loop.extent)
      const back = sub(sub(add(first, end), int(1)), at)
      return select(eq(mod(lot, int(2)), int(0)), at, back)
    })
  },
})

// Loop reversal: the last iteration first (`reverse`; Wolfe, High Performance Compilers for Parallel Computing,
// 1996).

/**
 * `reverse i`: the same iterations, the last one first. Blocks of threads begin in the order of their index. If
 * iterations take longer and longer, such as the rows of a triangle, the longest begin first, and no long iteration is
 * left at the end (list scheduling, longest processing time first; Graham 1969). The order must be free, so a loop may
 * be bound before it is reversed.
 */
export const reverse = primitive({
  word: 'reverse',
  call: "reverse('i')",
  takes: [arg.loop('loop')],
  given: (loop: LoopRef) => ({ loop }),
  apply(cx, step) {
    const { loop } = cx.loop(step.loop)
    return permuteIterations(cx, loop, 'reverse', (at) => sub(sub(loop.extent, int(1)), at))
  },
})
