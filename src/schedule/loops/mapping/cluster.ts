/** Thread block clusters: neighbouring blocks run together, and share copies by multicast (`cluster`). */

import { Facts } from '../../../analysis/integers/facts.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import { replaceLoop } from '../../../ir/statements/definitions.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { checkFactor } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import * as arg from '../../steps/arguments.ts'

/** The cluster size that every GPU with clusters supports (CUDA programming guide, thread block clusters). */
const MOST_BLOCKS = 8

/**
 * `cluster fo by 4`: 4 neighbouring iterations of the loop bound to block.x run together, as a cluster of thread
 * blocks. If all blocks of a cluster copy the same elements into shared memory, by an instruction that supports
 * `multicast`, one block copies for all; the blocks take turns. The semantics of the loop do not change.
 * The step is illegal if a cluster could be incomplete.
 */
export const cluster = primitive({
  word: 'cluster',
  call: "cluster('io', 2)",
  takes: [arg.loop('loop'), 'by', arg.integer('by')],
  given: (loop: LoopRef, by: number) => ({ loop, by }),
  apply(cx, step) {
    const { loop } = cx.loop(step.loop)
    const { mode } = loop
    if (mode.kind !== 'bind' || mode.to !== 'block.x')
      return cx.refuse('schedule/not-blocks', [loop], {
        message: `${loop.name} is not bound to block.x, the axis of clusters`,
        hint: `bind ${loop.name} to block.x first`,
      })
    checkFactor(cx, step.by, 'the number of blocks in a cluster', loop, MOST_BLOCKS)
    // A cluster of one block is the same as a block without clusters.
    if (step.by === 1) return { body: cx.kernel.body }
    if (!new Facts({ sizes: cx.kernel.facts }).isMultiple(loop.extent, step.by))
      cx.refuse('schedule/not-whole', [loop], {
        message: `${printExpr(loop.extent)} iterations of ${loop.name} are not a known multiple of the cluster size ${step.by}`,
        hint: 'require that a multiple of the tiles in a cluster divides the size',
      })
    return {
      body: replaceLoop(cx.kernel.body, loop.var, (l) => stmt({ ...l, mode: { ...mode, cluster: step.by } })),
    }
  },
})
