/** Loop unrolling, whole or by a factor (`unroll`). */

import { expectValues, FLAG } from '../../../ast/diagnostics/value-kinds.ts'
import { replaceLoop } from '../../../ir/statements/definitions.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { checkConstantExtent, checkFactor, checkSerial } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import * as arg from '../../steps/arguments.ts'

/** The maximum number of copies of a body: more copies only make the code longer. */
const WHOLE_LIMIT = 1024

/**
 * `unroll f` repeats the body for each value of a loop with a constant extent; `unroll j by 4` repeats it four times in
 * each iteration of any loop, and a remainder loop follows. The order stays, so the step is legal for every serial
 * loop. `unroll j by 4 predicated`: the last iteration is complete as well, so that its reads are in flight together;
 * copies beyond the end repeat the first copy's reads, and their results are discarded. This applies to bodies that
 * change registers only; other bodies get conditions. `by 1` leaves a single copy of the body.
 */
export const unroll = primitive({
  word: 'unroll',
  call: "unroll('i', 4)",
  takes: [arg.loop('loop'), arg.optional('by', arg.integer('by'), arg.flag('predicated'))],
  given: (loop: LoopRef, by?: number, more?: { readonly predicated?: boolean }) => ({
    loop,
    by,
    predicated: isPredicated(more),
  }),
  apply(cx, step) {
    const { loop } = cx.loop(step.loop)
    checkSerial(cx, loop, 'unroll')
    if (step.by !== undefined) checkFactor(cx, step.by, 'the factor of an unroll', loop)
    else if (checkConstantExtent(cx, loop, 'unrolling whole needs a constant extent') > WHOLE_LIMIT)
      cx.refuse('schedule/too-many-copies', [loop], {
        message: `full unrolling of ${loop.name} would make more than ${WHOLE_LIMIT} copies`,
        hint: `unroll ${loop.name} by a factor`,
      })
    if (step.predicated && step.by === undefined)
      cx.refuse('schedule/no-factor', [loop], {
        message: `${loop.name} is fully unrolled and has no remainder to predicate`,
        expected: `unroll ${loop.name} by 4 predicated`,
      })
    const predicated = step.predicated ? { predicated: true } : {}
    const mode = { kind: 'unroll', factor: step.by ?? null, ...predicated } as const
    return { body: replaceLoop(cx.kernel.body, loop.var, (l) => stmt({ ...l, mode })), unrolls: true }
  },
})

function isPredicated(more: { readonly predicated?: boolean } | undefined): true | undefined {
  const { predicated } = arg.options('unroll', more, ['predicated'])
  expectValues({ predicated }, { predicated: FLAG })
  return predicated ? true : undefined
}
