import { replaceLoop, stmt } from '../../ir/tree.ts'
import { checkFactor, checkSerial } from '../checks.ts'
import type { Primitive } from '../primitive.ts'
import { featureMajor } from '../samples.ts'
import type { PipelineStep } from '../steps.ts'

/** Stages beyond which no shared memory holds the copies. */
const MOST_STAGES = 16

/**
 * `pipeline ko by n`: copies into shared memory that an iteration of `ko` makes are made `n - 1` iterations ahead,
 * while earlier ones are computed; each copy has room for `n` iterations. The meaning is that of the plain loop.
 */
export const pipeline: Primitive<PipelineStep> = {
  kind: 'pipeline',
  apply(cx, step) {
    const { loop } = cx.loop(step.loop)
    checkSerial(cx, loop, 'pipeline')
    checkFactor(cx, step.by, 2, 'the number of stages', loop)
    if (step.by > MOST_STAGES)
      cx.refuse({
        code: 'bad-factor',
        message: `the number of stages is ${step.by}`,
        loops: [loop],
        expected: `a whole number from 2 to ${MOST_STAGES}`,
      })
    const mode = { kind: 'pipeline', stages: step.by } as const
    return { body: replaceLoop(cx.kernel.body, loop.var, (l) => stmt({ ...l, mode })) }
  },
  example: {
    before: featureMajor,
    step: { kind: 'pipeline', loop: 'j', by: 2 },
    after: `\
for i in 0..m
  for f in 0..32
    for j in 0..j_indptr[i + 1] - j_indptr[i]  reduce  @pipeline(2)
      C[i, f] += A[j_indptr[i] + j] * B[j_indices[j_indptr[i] + j], f]  init`,
  },
}
