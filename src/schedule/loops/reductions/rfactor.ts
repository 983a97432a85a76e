/** Reduction factoring: a reduction goes through partial results (`rfactor`). */

import { variable } from '../../../ir/expressions/expr.ts'
import { mentionsSome } from '../../../ir/expressions/expr-tree.ts'
import { findLoop, type LoopLocation } from '../../../ir/statements/definitions.ts'
import type { For, Reduce } from '../../../ir/statements/loops.ts'
import type { ReductionPath } from '../../../ir/statements/reductions.ts'
import { elementChanges, loopsUsedBy, reductionsOf } from '../../../ir/statements/reductions.ts'
import { replaceStmt, stmt, walkStmts } from '../../../ir/statements/tree.ts'
import {
  checkNamedOutside,
  checkNoReduction,
  checkRectangular,
  checkSerial,
  checkUsedAlone,
  SEPARATE,
} from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'
import { checkExtent, combineNest, partialResults } from './partial-results-nest.ts'

/**
 * `rfactor ji -> yp`: partial results. The reduction into `y` becomes a reduction into `yp`, which has `ji` as a
 * further dimension (the first one if `ji` is outside of a loop over elements, otherwise the last one), so that `ji` runs over different elements. A second loop nest right after it combines the partial
 * results. The loop's extent must be constant or over sizes.
 */
export const rfactor = primitive({
  word: 'rfactor',
  call: "rfactor('j', 'C_partial')",
  takes: [arg.loop('loop'), arg.optional('->', arg.newBuffer('into'))],
  given: (loop: LoopRef, into?: string) => ({ loop, into }),
  apply(cx, step) {
    const at = cx.loop(step.loop)
    const { loop } = at
    checkSerial(cx, loop, 'rfactor')
    if (!loop.reduce)
      cx.refuse('schedule/no-reduction', [loop], {
        message: `iterations of ${loop.name} combine nothing`,
        expected: 'a reduction loop',
      })
    checkExtent(cx, loop, `split ${loop.name} by a constant and rfactor the inner loop`)
    const { reduce, path } = onlyReduction(cx, at)
    const root = path.find((l) => l.reduce)!
    const inside = path.slice(path.indexOf(root))
    checkNamedOutside(cx, root, reduce, 'rfactor')
    checkFree(cx, inside, loop, reduce)
    const again = loopsUsedBy(
      inside.filter((l) => !l.reduce),
      reduce.targets.flatMap((t) => t.index),
    )
    // The second loop nest lacks the reduction loops.
    const lacking = inside.filter((l) => !again.includes(l))
    for (const l of again) checkRectangular(cx, lacking, l, 'partial results', 'use atomic instead')

    // Dimensions in the order of the loops: iterations of the innermost loop write neighbouring elements.
    const isOuter = again.some((l) => inside.indexOf(l) > inside.indexOf(loop))
    const along = <T>(dims: readonly T[], own: T): T[] => (isOuter ? [own, ...dims] : [...dims, own])
    const { partials, own } = partialResults(cx, reduce, (t, of) => {
      const named = step.into && (reduce.targets.length === 1 ? step.into : `${step.into}_${of.name}`)
      const name = named && cx.claim(named)
      const shape = along(of.shape, loop.extent)
      return { name, shape, fill: 0, index: along(t.index, variable(loop.var)) }
    })
    const replaced = replaceStmt(cx.kernel.body, reduce, () => own)
    const spatial = replaceStmt(replaced, findLoop(replaced, loop.var)!.loop, (l) =>
      stmt<For>({ ...(l as For), reduce: false }),
    )
    const loops = [...again, loop]
    const hidden = new Set(inside.filter((l) => !loops.includes(l)).map((l) => l.var))
    // In the order of the guards, not of the loops: some guards protect reads of later guards.
    const conditions = inside.flatMap((l) => (loops.includes(l) ? l.guards : []))
    const restated = conditions.filter((g) => !mentionsSome(g, hidden))
    const second = combineNest(cx, reduce, own, loops, restated)
    const body = replaceStmt(spatial, findLoop(spatial, root.var)!.loop, (l) => [l, second])
    return { body, buffers: partials }
  },
})

/** The reduction that is the only statement of the loop, with the loops around it. */
function onlyReduction(cx: Context, at: LoopLocation): ReductionPath {
  const found = reductionsOf(cx.kernel.body).find((r) => r.path.includes(at.loop))
  let others = 0
  walkStmts(at.loop.body, (s) => void (others += s.kind === 'for' ? 0 : 1))
  if (!found || others !== 1)
    return cx.refuse('schedule/not-one-reduction', [at.loop], {
      message: `${at.loop.name} holds ${others} statements`,
      expected: 'a loop that contains only one reduction',
      hint: SEPARATE,
    })
  const local = found.reduce.targets.find((t) => cx.buffer(t.buffer).scope !== 'global')
  if (local)
    cx.refuse('schedule/local-target', [at.loop], {
      message: `${local.buffer} is already cached`,
      hint: 'rfactor first, then cache',
    })
  return found
}

/**
 * Throws unless the partial results can be complete after the outermost reduction loop: no statement inside of it may
 * use the target, and no loop inside may be bound, because threads or blocks would have to wait.
 */
function checkFree(cx: Context, inside: readonly For[], loop: For, reduce: Reduce): void {
  const root = inside[0]!
  const bound = inside.find((l) => l.mode.kind === 'bind')
  if (bound)
    cx.refuse('schedule/not-serial', [bound, loop], {
      message: `${bound.name} is already bound, and the second loop nest would come later`,
      hint: 'rfactor first, then bind',
    })
  checkUsedAlone(cx, [root], reduce, [root], root.name)
  for (const l of inside)
    if (l.reduce && elementChanges(reduce, l))
      checkNoReduction(cx, l, `the element that is reduced into changes with ${l.name}`, 'use atomic instead')
}
