/** Software pipelining: copies are made stages ahead of their use, in a ring of buffers (`pipeline`). */

import { copiesIn, pipelineSequence } from '../../../analysis/loops/pipeline-sequence.ts'
import { loopsOf, replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For } from '../../../ir/statements/loops.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { checkFactor, checkSerial } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'

/** The maximum number of stages: shared memory cannot hold the copies of more. */
const MOST_STAGES = 16

/**
 * `pipeline ko by n`: copies into shared memory at the beginning of an iteration of `ko` are made `n - 1` iterations
 * ahead, during the computation of earlier iterations. Memory is allocated for the copies of `n` iterations. The
 * semantics are those of the plain loop, and one stage leaves the loop unchanged. `over round`: copies continue into
 * the next iterations of `round`, the serial loop around, so that all iterations of `ko` are one sequence.
 * The step is illegal if the loop has no such copies, or if they read data that the loop (or `round`) writes.
 */
export const pipeline = primitive({
  word: 'pipeline',
  call: "pipeline('jo', 2)",
  takes: [arg.loop('loop'), 'by', arg.integer('by'), arg.optional('over', arg.loop('over'))],
  given: (loop: LoopRef, by: number, more?: { readonly over?: LoopRef }) => ({
    loop,
    by,
    ...arg.options('pipeline', more, ['over']),
  }),
  apply(cx, step) {
    const { loop } = cx.loop(step.loop)
    checkSerial(cx, loop, 'pipeline')
    checkFactor(cx, step.by, 'the number of stages', loop, MOST_STAGES)
    checkCopies(cx, loop)
    if (step.over !== undefined) checkSequence(cx, loop, cx.loop(step.over).loop)
    if (step.by === 1) return { body: cx.kernel.body }
    const continued = step.over !== undefined && ({ continued: true } as const)
    const mode = { kind: 'pipeline', stages: step.by, ...continued } as const
    return { body: replaceLoop(cx.kernel.body, loop.var, (l) => stmt({ ...l, mode })) }
  },
})

function checkCopies(cx: Context, loop: For): void {
  const { statements, late } = copiesIn(loop)
  if (statements.length > 0) return
  const [first] = late
  if (first)
    cx.refuse('schedule/order-matters', [loop, ...loopsOf([first.stmt]).slice(0, 1)], {
      message: `${first.fills} is filled from ${first.reads}, which ${loop.name} writes`,
      expected: 'copies of buffers that the loop does not write',
    })
  cx.refuse('schedule/no-copies', [loop], {
    message: `${loop.name} contains no copy to shared memory`,
    hint: `cache_read … at ${loop.name} in shared first`,
  })
}

function checkSequence(cx: Context, loop: For, over: For): void {
  const found = pipelineSequence(cx.kernel.body, loop.var)
  if (!('over' in found)) {
    const { loops, ...problem } = found
    cx.refuse('schedule/not-one-sequence', loops, problem)
  }
  if (found.over.var !== over.var)
    cx.refuse('schedule/not-one-sequence', [over, found.over, loop], {
      message: `${found.over.name} is the innermost serial loop around ${loop.name}, not ${over.name}`,
      expected: 'the next outer serial loop, with only thread-bound loops in between',
      hint: `bind ${found.over.name} first, or pipeline over ${found.over.name}`,
    })
}
