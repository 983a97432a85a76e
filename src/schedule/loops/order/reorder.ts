/** Loop interchange (permutation) (`reorder`). */

import { freeVars } from '../../../ir/expressions/expr-tree.ts'
import { replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For, Stmt } from '../../../ir/statements/loops.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { checkOrderFree, checkPerfectChain, checkRectangular, checkSerial } from '../../legality/checks.ts'
import { dependentAfterReorder } from '../../legality/loop-dependence.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'

/**
 * `reorder (f, j)`: the named loops exchange their places, in the given order; other loops between them stay. Guards
 * move to the innermost loop that they mention. The step is illegal if a loop would leave a loop that its extent
 * depends on, or if the order of iterations matters. A spatial loop becomes a reduction loop if it leaves a reduction
 * loop and its iterations reach the same elements in different iterations of that loop.
 */
export const reorder = primitive({
  word: 'reorder',
  call: "reorder('f', 'j')",
  takes: [arg.loops('loops')],
  given: (...loops: (LoopRef | readonly LoopRef[])[]) => ({ loops: loops.flat() }),
  apply(cx, step) {
    const found = step.loops.map((r) => cx.loop(r))
    // A role may have one loop, or no loop.
    if (found.length < 2) return { body: cx.kernel.body }
    const chain = checkPerfectChain(cx, found, 'reorder')
    return {
      body: reorderChain(
        cx,
        chain,
        found.map((f) => f.loop),
      ),
    }
  },
})

function reorderChain(cx: Context, chain: readonly For[], wanted: readonly For[]): readonly Stmt[] {
  const queue = [...wanted]
  const next = chain.map((l) => (wanted.includes(l) ? queue.shift()! : l))
  const first = next.findIndex((l, k) => l !== chain[k])
  if (first < 0) return cx.kernel.body
  const last = next.findLastIndex((l, k) => l !== chain[k])
  for (const [k, l] of next.entries()) {
    const left = next.slice(k + 1).filter((x) => chain.indexOf(x) < chain.indexOf(l))
    checkRectangular(cx, left, l, 'reorder')
  }
  for (const l of chain.slice(first, last)) checkOrderFree(cx, l, 'reorder')
  const body = chain.at(-1)!.body
  const meeting = dependentAfterReorder(chain, next, body)
  for (const l of meeting) checkSerial(cx, l, 'reorder')
  const placed = placeGuards(chain, next).map((l, k) =>
    meeting.includes(next[k]!) ? stmt<For>({ ...l, reduce: true }) : l,
  )
  const nest = placed.reduceRight<readonly Stmt[]>((inside, l) => [stmt<For>({ ...l, body: inside })], body)
  return replaceLoop(cx.kernel.body, chain[0]!.var, () => nest)
}

/**
 * Returns the loops with each guard at the innermost loop that it mentions: it is evaluated as early as possible, and
 * all statements that it protects are inside. Guards keep their relative order.
 */
function placeGuards(chain: readonly For[], next: readonly For[]): readonly For[] {
  const guards = chain.flatMap((l) => l.guards.map((g) => ({ guard: g, home: l })))
  const placeOf = (g: (typeof guards)[number]): For =>
    next.findLast((l) => freeVars(g.guard).has(l.var)) ?? g.home
  return next.map((l) =>
    stmt<For>({ ...l, guards: guards.filter((g) => placeOf(g) === l).map((g) => g.guard) }),
  )
}
