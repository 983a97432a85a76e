/** Loop reversal: the last iteration first (`reverse`; Wolfe, High Performance Compilers for Parallel Computing, 1996). */

import { int, sub } from '../../../ir/expressions/expr.ts'
import { rowBlocks } from '../../examples.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import * as arg from '../../steps/arguments.ts'
import { permuteIterations } from './serpentine.ts'

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
  within: (_, { loop }) => [loop],
  apply(cx, step) {
    const { loop } = cx.loop(step.loop)
    return permuteIterations(cx, loop, 'reverse', (at) => sub(sub(loop.extent, int(1)), at))
  },
  example: { ...rowBlocks, steps: 'reverse i' },
})
