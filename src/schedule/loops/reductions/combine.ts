/** Deterministic reduction through temporaries: updates are stored, then added up in order (`combine`). */

import { type Expr, variable } from '../../../ir/expressions/expr.ts'
import { mentions, readsMemory } from '../../../ir/expressions/expr-tree.ts'
import type { Buffer, For, Reduce, Stmt } from '../../../ir/statements/loops.ts'
import { elementChanges, initLoops, reductionsOf } from '../../../ir/statements/reductions.ts'
import { rewriteStmts, stmt } from '../../../ir/statements/tree.ts'
import {
  checkNamedOutside,
  checkRectangular,
  checkUsedAlone,
  refuseNoReduction,
  SEPARATE,
} from '../../legality/checks.ts'
import { primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'
import { checkOthersApart } from '../caching/cache-write-checks.ts'
import { checkExtent, partialResults, partialResultsNest, type Update } from './partial-results-nest.ts'
import { rfactor } from './rfactor.ts'

/**
 * `combine C`: loop nests that update `C` may run their iterations concurrently, also with each other, without atomics
 * and with the same result in every run. Values that iterations of a loop nest would combine go to a temporary, with an
 * element for each position of the loops in which they conflict. A following loop nest adds the positions of an element
 * in order, one element at a time if the list of elements ascends. A loop nest without conflicts does not change; the
 * results of further loop nests are added in the order of the loop nests. With the name of a loop nest, only this loop
 * nest changes.
 */
export const combine = primitive({
  word: 'combine',
  call: "combine('C')",
  takes: [arg.buffer('buffer'), arg.optional('in', arg.nest('nest'))],
  given: (buffer: string) => ({ buffer }),
  apply(cx, step) {
    const { name, scope } = cx.buffer(step.buffer)
    if (scope !== 'global')
      cx.refuse('schedule/local-target', [], {
        message: `${name} is in ${scope === 'shared' ? 'shared memory' : 'registers'}`,
        expected: 'a buffer in global memory',
      })
    const tops = cx.kernel.body.flatMap((top) =>
      reductionsOf([top]).flatMap(({ reduce, path }) => {
        const inNest = step.nest === undefined || path.some((l) => l.nest === step.nest)
        return inNest && reduce.targets.some((t) => t.buffer === name) ? [{ top, reduce, path }] : []
      }),
    )
    if (tops.length === 0) refuseNoReduction(cx, name, step.nest)
    if (tops.some(({ reduce }) => reduce.atomic))
      cx.refuse('schedule/atomic-already', [], {
        message: `${name} is updated atomically`,
        expected: 'atomic or combine',
      })
    let here = cx
    let plain: Stmt | undefined
    const buffers: Buffer[] = []
    for (const update of tops) {
      const meets = update.path.some((l) => l.reduce && elementChanges(update.reduce, l))
      const root = update.path[0]
      const factored = !meets && root?.reduce === true
      if (!meets && !factored && plain === undefined) {
        plain = update.top
        continue
      }
      const outcome = factored
        ? rfactor.apply(here, { kind: 'rfactor', loop: { var: root.var } })
        : partial(here, update)
      buffers.push(...(outcome.buffers ?? []))
      here = here.on({
        ...here.kernel,
        body: outcome.body,
        buffers: [...here.kernel.buffers, ...(outcome.buffers ?? [])],
      })
    }
    return { body: here.kernel.body, buffers }
  },
})

/** Returns the loop nest with a temporary as its target, followed by the loop nest that adds up the temporary. */
function partial(cx: Context, update: Update): { body: readonly Stmt[]; buffers: readonly Buffer[] } {
  const { top, reduce, path } = update
  checkAlone(cx, update)
  // Dimensions in which iterations conflict, or that are listed, are replaced by the loops that run through them.
  const meeting = path.filter((l) => l.reduce && elementChanges(reduce, l))
  const replaced = (e: Expr): boolean =>
    meeting.length > 0 ? meeting.some((l) => mentions(e, l.var)) : readsMemory(e)
  const through = path.filter((l) =>
    reduce.targets.some((t) => t.index.some((e) => replaced(e) && mentions(e, l.var))),
  )
  for (const l of through)
    checkExtent(
      cx,
      l,
      `use atomic; or fuse ${l.name} on coordinates with the loop that determines its extent`,
    )
  const { partials, own } = partialResults(cx, reduce, (t, { shape, fill }) => {
    const kept = [...t.index.keys()].filter((d) => !replaced(t.index[d]!))
    return {
      shape: [...through.map((l) => l.extent), ...kept.map((d) => shape[d]!)],
      fill,
      index: [...through.map((l) => variable(l.var)), ...kept.map((d) => t.index[d]!)],
    }
  })
  const spatial = new Set(meeting.map((l) => l.var))
  const rewritten = rewriteStmts([top], {
    stmt: (s) => {
      if (s === reduce) return own
      return s.kind === 'for' && spatial.has(s.var) ? stmt<For>({ ...s, reduce: false }) : undefined
    },
  })
  checkOthersApart(cx, meeting, rewritten, SEPARATE)
  checkInit(cx, own, rewritten)
  const second = partialResultsNest(cx, update, through, own)
  return {
    body: cx.kernel.body.flatMap((s) => (s === top ? [...rewritten, second] : [s])),
    buffers: partials,
  }
}

function checkAlone(cx: Context, { top, reduce, path }: Update): void {
  const bound = path.find((l) => l.reduce && l.mode.kind !== 'serial' && elementChanges(reduce, l))
  if (bound)
    cx.refuse('schedule/not-serial', [bound], {
      message: `${bound.name} is already bound`,
      hint: 'combine first, then bind',
    })
  checkNamedOutside(cx, top, reduce, 'combine')
  checkUsedAlone(cx, [top], reduce, path.slice(0, 1))
}

/** The temporary is initialised before the outermost reduction loop, under copies of the inner loops. */
function checkInit(cx: Context, own: Reduce, rewritten: readonly Stmt[]): void {
  const path = reductionsOf(rewritten).find((r) => r.reduce === own)!.path
  const inside = path.slice(path.findIndex((l) => l.reduce))
  const hidden = inside.filter((l) => l.reduce)
  for (const l of initLoops(own, inside))
    checkRectangular(cx, hidden, l, 'partial results', 'use atomic instead')
}
