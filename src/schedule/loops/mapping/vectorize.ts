/** Vectorization: iterations of an innermost loop become vector lanes (`vectorize`). */

import { loopsOf, replaceLoop } from '../../../ir/statements/definitions.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { checkConstantExtent, checkNoReduction, checkOrderFree, checkSerial } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import * as arg from '../../steps/arguments.ts'

const LANES = [2, 4, 8]

/**
 * `vectorize f`: the iterations of an innermost loop of extent 2, 4 or 8 run as vector lanes if the sizes make the accesses
 * aligned and all lanes exist, otherwise one after the other (`lower/specialise/vector-versioning.ts`). The step is illegal for
 * reductions (lanes would combine into one element) and for iterations that depend on each other.
 */
export const vectorize = primitive({
  word: 'vectorize',
  call: "vectorize('fi')",
  takes: [arg.loop('loop')],
  given: (loop: LoopRef) => ({ loop }),
  apply(cx, step) {
    const { loop } = cx.loop(step.loop)
    checkSerial(cx, loop, 'vectorize')
    const lanes = checkConstantExtent(cx, loop, 'a vector has 2, 4 or 8 lanes')
    if (lanes !== 1 && !LANES.includes(lanes))
      cx.refuse('schedule/bad-lanes', [loop], {
        message: `${loop.name} has ${lanes} iterations`,
        expected: 'an extent of 2, 4 or 8',
        hint: `split ${loop.name} by 4 and vectorize the inner loop`,
      })
    const inner = loopsOf(loop.body)
    if (inner.length > 0)
      cx.refuse('schedule/not-innermost', [loop, ...inner], {
        message: `${loop.name} is not innermost`,
        hint: `reorder ${loop.name} to the innermost position`,
      })
    checkNoReduction(
      cx,
      loop,
      'vectorize',
      `rfactor ${loop.name} first, or vectorize a loop over different elements`,
    )
    checkOrderFree(cx, loop, 'vectorize')
    // The number of lanes may be a parameter of the schedule with value 1: neither a vector nor a loop.
    const mode = lanes === 1 ? ({ kind: 'unroll', factor: null } as const) : ({ kind: 'vectorize' } as const)
    return { body: replaceLoop(cx.kernel.body, loop.var, (l) => stmt({ ...l, mode })) }
  },
})
