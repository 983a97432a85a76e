/** Loop fission (distribution): one loop over several statements becomes two (`fission`). */

import { writtenIn } from '../../../analysis/dependence/loop-writes.ts'
import { quantity } from '../../../ast/print/quantity.ts'
import { nestNames } from '../../../ir/expressions/bound-names.ts'
import { variable } from '../../../ir/expressions/expr.ts'
import { accessesOf } from '../../../ir/statements/accesses.ts'
import { substituteStmts } from '../../../ir/statements/bindings.ts'
import { allocations, replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For, Stmt } from '../../../ir/statements/loops.ts'
import { type Body, stmt } from '../../../ir/statements/tree.ts'
import { checkSerial } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import { among } from '../../refusals.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'

/**
 * `fission i after produce`: the statements of `i` up to `produce`, and the statements after it, get a loop each. All
 * iterations of the first part then run before the iterations of the second part. Therefore elements that one part
 * writes and the other accesses must be different in different iterations, or be combined by one reducer.
 */
export const fission = primitive({
  word: 'fission',
  call: "fission('i', 1)",
  takes: [arg.loop('loop'), 'after', arg.place('after')],
  given: (loop: LoopRef, after: string | number) => ({ loop, after }),
  apply(cx, step) {
    const { loop } = cx.loop(step.loop)
    checkSerial(cx, loop, 'fission')
    const count = splitPoint(cx, loop, step.after)
    const [first, second] = [loop.body.slice(0, count), loop.body.slice(count)]
    checkNoCommonAllocation(cx, loop, first, second)
    checkIndependentParts(cx, loop, first, second)
    const copy = cx.fresh(loop.var)
    const own = nestOf(second)
    const nest =
      own === undefined || own === loop.nest ? nestNames(cx.kernel.body).fresh(`${loop.nest}_rest`) : own
    const map = new Map([[loop.var, variable(copy)]])
    return {
      body: replaceLoop(cx.kernel.body, loop.var, (l) => [
        stmt({ ...l, body: first }),
        stmt<For>({ ...(substituteStmts([{ ...l, body: second }], map)[0] as For), var: copy, nest }),
      ]),
    }
  },
})

const nestOf = (body: Body): string | undefined => body.find((s): s is For => s.kind === 'for')?.nest

/** The number of statements that stay in the first loop. */
function splitPoint(cx: Context, loop: For, after: string | number): number {
  const n = loop.body.length
  const nests = [...new Set(loop.body.flatMap((s) => (s.kind === 'for' ? [s.nest] : [])))]
  const belongs = (s: Stmt): boolean => s.kind === 'for' && s.nest === after
  const count = typeof after === 'number' ? after : loop.body.findLastIndex(belongs) + 1
  if (typeof after === 'string' && count === 0)
    cx.refuse('schedule/unknown-nest', [loop], {
      message: `${loop.name} contains no loop nest ${after}`,
      ...among(after, nests),
    })
  if (!Number.isInteger(count) || count < 1 || count >= n)
    cx.refuse('schedule/nothing-to-separate', [loop], {
      message: `${loop.name} has ${quantity(n, 'statement')}, and ${after} leaves a part empty`,
      expected: n > 1 ? `a place after one of the first ${n - 1} statements` : 'a loop of several statements',
    })
  return count
}

function checkNoCommonAllocation(cx: Context, loop: For, first: Body, second: Body): void {
  const local = allocations(first.filter((s) => s.kind === 'alloc'))
  const used = accessesOf(second).find((a) => local.has(a.buffer))
  if (!used) return
  cx.refuse('schedule/local-between-parts', [loop], {
    message: `both parts of ${loop.name} use ${used.buffer}, which is private to each iteration`,
    hint: `move fission before the step that caches ${used.buffer}`,
  })
}

function checkIndependentParts(cx: Context, loop: For, first: Body, second: Body): void {
  const [a, b] = [accessesOf(first), accessesOf(second)]
  for (const w of writtenIn(cx.kernel, loop)) {
    const before = a.filter((x) => x.buffer === w.buffer)
    const after = b.filter((x) => x.buffer === w.buffer)
    if (w.disjoint || before.length === 0 || after.length === 0) continue
    const all = [...before, ...after]
    const kinds = new Set(
      all.map((x) => (x.stmt.kind === 'reduce' && x.mode === 'write' ? x.stmt.reducer.name : '')),
    )
    const starts = after.some((x) => x.stmt.kind === 'reduce' && x.stmt.init)
    const restarts = !loop.reduce && all.some((x) => x.stmt.kind === 'reduce' && x.stmt.init)
    const single = all.every((x) => x.stmt.kind === 'reduce' && x.stmt.targets.length === 1)
    if (kinds.size === 1 && !kinds.has('') && single && !starts && !restarts) continue
    cx.refuse('schedule/order-matters', [loop], {
      message: `the parts of ${loop.name} use elements of ${w.buffer} that different iterations share`,
      expected: `${w.buffer} indexed by ${loop.name} in the same way on both sides`,
    })
  }
}
