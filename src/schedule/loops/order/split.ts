/** Strip mining: a loop becomes a loop over chunks and a loop inside of a chunk (`split`). */

import { Facts } from '../../../analysis/integers/facts.ts'
import { add, ceildiv, type Expr, int, lt, mul, variable } from '../../../ir/expressions/expr.ts'
import { substituteStmts } from '../../../ir/statements/bindings.ts'
import { replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For } from '../../../ir/statements/loops.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { checkFactor, checkSerial } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { gone, primitive } from '../../primitive.ts'
import * as arg from '../../steps/arguments.ts'

/**
 * `split i by c -> (io, ii)`: `i` becomes `io * c + ii`, with `ii` in `0..c`. The order stays, so the step is legal for
 * every serial loop. If the extent is not evidently a multiple of `c`, the inner loop is guarded, and all that depends
 * on `i` stays inside of the guard.
 */
export const split = primitive({
  word: 'split',
  call: "split('i', 32, ['io', 'ii'])",
  takes: [arg.loop('loop'), 'by', arg.integer('by'), arg.optional('->', arg.twoNewLoops('into'))],
  given: (loop: LoopRef, by: number, into?: readonly [string, string]) => ({ loop, by, into }),
  apply(cx, step) {
    const { loop } = cx.loop(step.loop)
    checkSerial(cx, loop, 'split')
    checkFactor(cx, step.by, 'the factor of a split', loop)
    const names = step.into ?? [`${loop.name}o`, `${loop.name}i`]
    cx.claimLoops(loop.nest, names, [loop])
    const facts = new Facts({ sizes: cx.kernel.facts })
    const [outer, inner] = names.map((n) => cx.fresh(n)) as [string, string]
    return {
      body: replaceLoop(cx.kernel.body, loop.var, (l) =>
        splitLoop(l, step.by, names, [outer, inner], facts.isMultiple(l.extent, step.by)),
      ),
      gone: [gone(loop, 'split', names)],
    }
  },
})

function splitLoop(
  loop: For,
  by: number,
  names: readonly [string, string] | readonly string[],
  vars: readonly [string, string],
  even: boolean,
): For {
  const whole = add(mul(variable(vars[0]), int(by)), variable(vars[1]))
  const map = new Map<string, Expr>([[loop.var, whole]])
  const inner = substituteStmts([{ ...loop, extent: int(by) }], map)[0] as For
  const range = even ? [] : [lt(whole, loop.extent)]
  return stmt<For>({
    ...loop,
    var: vars[0],
    name: names[0]!,
    extent: ceildiv(loop.extent, int(by)),
    guards: [],
    body: [stmt<For>({ ...inner, var: vars[1], name: names[1]!, guards: [...range, ...inner.guards] })],
  })
}
