import { replaceLoop, stmt } from '../../ir/tree.ts'
import { checkConstantExtent, checkFactor, checkSerial } from '../checks.ts'
import type { Primitive } from '../primitive.ts'
import { featureMajor } from '../samples.ts'
import type { UnrollStep } from '../steps.ts'

/** Copies of a body beyond which unrolling whole only makes the text long. */
const WHOLE_LIMIT = 1024

/**
 * `unroll f` repeats the body for each value of a constant loop, `unroll j by 4` four times a round for any
 * loop, with the rest after it. The order stays: always legal for a serial loop.
 */
export const unroll: Primitive<UnrollStep> = {
  kind: 'unroll',
  apply(cx, step) {
    const { loop } = cx.loop(step.loop)
    checkSerial(cx, loop, 'unroll')
    if (step.by !== undefined) checkFactor(cx, step.by, 2, 'the factor of an unroll', loop)
    else if (checkConstantExtent(cx, loop, 'unrolling whole needs a constant extent') > WHOLE_LIMIT)
      cx.refuse({
        code: 'too-many-copies',
        message: `unrolling ${loop.name} whole would make more than ${WHOLE_LIMIT} copies`,
        loops: [loop],
        hint: `unroll ${loop.name} by a factor`,
      })
    const mode = { kind: 'unroll', factor: step.by ?? null } as const
    return { body: replaceLoop(cx.kernel.body, loop.var, (l) => stmt({ ...l, mode })) }
  },
  example: {
    before: featureMajor,
    step: { kind: 'unroll', loop: 'j', by: 4 },
    after: `\
for i in 0..m
  for f in 0..32
    for j in 0..j_indptr[i + 1] - j_indptr[i]  reduce  @unroll(4)
      C[i, f] += A[j_indptr[i] + j] * B[j_indices[j_indptr[i] + j], f]  init`,
  },
}
