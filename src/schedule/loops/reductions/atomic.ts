/** Atomic updates: reductions by read-modify-write instructions or compare-and-swap (`atomic`). */

import { reductionsOf } from '../../../ir/statements/reductions.ts'
import { rewriteStmts, stmt } from '../../../ir/statements/tree.ts'
import { isBuiltinReducer } from '../../../ir/values/monoid.ts'
import { refuseNoReduction } from '../../legality/checks.ts'
import { primitive } from '../../primitive.ts'
import * as arg from '../../steps/arguments.ts'

/**
 * `atomic C`: reductions into `C` update it atomically, so that loops which combine into its elements may be bound to
 * blocks. The reducer must have one element, and the order of updates is not specified. Types narrower than a word, and
 * reducers without an atomic instruction, use compare-and-swap on the word of the element.
 */
export const atomic = primitive({
  word: 'atomic',
  call: "atomic('C')",
  takes: [arg.buffer('buffer')],
  given: (buffer: string) => ({ buffer }),
  apply(cx, step) {
    const buffer = cx.buffer(step.buffer)
    if (buffer.scope === 'register')
      cx.refuse('schedule/not-shared', [], {
        message: `${buffer.name} is in registers, which no other thread can access`,
        expected: 'a buffer in global or shared memory',
      })
    const reductions = reductionsOf(cx.kernel.body)
      .map((r) => r.reduce)
      .filter((r) => r.targets.some((t) => t.buffer === buffer.name))
    const other = reductions.find((r) => r.targets.length > 1 || !isBuiltinReducer(r.reducer.name))
    if (other)
      cx.refuse('schedule/no-atomics', [], {
        message: `${other.reducer.name} combines ${other.targets.length > 1 ? 'several elements' : 'by a declared monoid'}, which no atomic does`,
        expected: 'a reduction by + * min max and or',
        hint: 'rfactor the loop: a second loop nest combines the partial results',
      })
    if (reductions.length === 0) refuseNoReduction(cx, buffer.name)
    return {
      body: rewriteStmts(cx.kernel.body, {
        stmt: (s) =>
          s.kind === 'reduce' && !s.atomic && s.targets[0]!.buffer === buffer.name
            ? stmt({ ...s, atomic: true })
            : undefined,
      }),
    }
  },
})
