/** Loop peeling: the first iteration is separated from the loop (`peel`). */

import { nestNames } from '../../../ir/expressions/bound-names.ts'
import { add, int, max, min, sub, variable } from '../../../ir/expressions/expr.ts'
import { substitute } from '../../../ir/expressions/expr-tree.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import { bodyAt } from '../../../ir/statements/clone-loops.ts'
import { allocations, loopsOf, replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For } from '../../../ir/statements/loops.ts'
import { initsOf } from '../../../ir/statements/reductions.ts'
import { type Body, rewriteStmts, stmt } from '../../../ir/statements/tree.ts'
import { checkSerial } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'

/**
 * `peel j`: separates the first iteration of `j` (if there is one) from a loop over the other iterations, whose loops
 * belong to a loop nest of their own (`rows_rest.j` next to `rows.j`). The order stays, so the step is legal for every
 * serial loop: reductions over `j` are initialised in the first loop and continue in the second.
 * The step is illegal if the loop contains chunks that are combined in shared memory or carried to a buffer, because
 * the number of a single loop distinguishes such chunks.
 */
export const peel = primitive({
  word: 'peel',
  call: "peel('j')",
  takes: [arg.loop('loop')],
  given: (loop: LoopRef) => ({ loop }),
  apply(cx, step) {
    const { loop } = cx.loop(step.loop)
    checkSerial(cx, loop, 'peel')
    checkSeveral(cx, loop)
    checkNoShares(cx, loop)
    return { body: replaceLoop(cx.kernel.body, loop.var, (l) => [firstOf(l), restOf(cx, l)]) }
  },
})

const firstOf = (loop: For): For => stmt({ ...loop, extent: min(loop.extent, int(1)) })

function restOf(cx: Context, loop: For): For {
  const name = cx.fresh(loop.var)
  const next = add(variable(name), int(1))
  const body = bodyAt({ ...loop, body: loop.reduce ? goesOn(loop.body) : loop.body }, next, cx)
  const rest = stmt<For>({
    ...loop,
    var: name,
    extent: max(sub(loop.extent, int(1)), int(0)),
    guards: loop.guards.map((g) => substitute(g, new Map([[loop.var, next]]))),
    body,
  })
  return ownNests(cx, loop, rest)
}

/** The body without the initialisations of sums that outlive an iteration: the first iteration has done them. */
function goesOn(body: Body): Body {
  const local = allocations(body)
  const started = new Set(
    initsOf(body).flatMap(({ reduce }) => (reduce.targets.some((t) => local.has(t.buffer)) ? [] : [reduce])),
  )
  return rewriteStmts(body, {
    stmt: (s) => (s.kind === 'reduce' && started.has(s) ? stmt({ ...s, init: false }) : undefined),
  })
}

/** Returns the copy with separate loop nests; loop nests named after copied buffers get the names of the new copies. */
function ownNests(cx: Context, loop: For, copy: For): For {
  const nests = nestNames(cx.kernel.body)
  const copied = [...allocations(copy.body).keys()]
  const names = new Map([...allocations(loop.body).keys()].map((b, k) => [b, copied[k]!]))
  for (const { nest } of loopsOf([loop])) {
    if (!names.has(nest)) names.set(nest, nests.fresh(`${nest}_rest`))
  }
  const renamed = rewriteStmts([copy], {
    stmt: (s) => (s.kind === 'for' ? stmt({ ...s, nest: names.get(s.nest)! }) : undefined),
  })
  return renamed[0] as For
}

function checkSeveral(cx: Context, loop: For): void {
  if (loop.extent.kind !== 'const' || loop.extent.value > 1) return
  cx.refuse('schedule/nothing-to-separate', [loop], {
    message: `${loop.name} has ${printExpr(loop.extent)} iterations, so a part would be empty`,
    expected: 'a loop of several iterations',
  })
}

function checkNoShares(cx: Context, loop: For): void {
  const shares = loopsOf(loop.body).find(
    ({ mode }) => mode.kind === 'accumulate' && (mode.within !== undefined || mode.carry !== undefined),
  )
  if (!shares) return
  cx.refuse('schedule/no-shares', [loop, shares], {
    message: `peel: ${shares.name} inside of ${loop.name} accumulates over chunks, which needs a single loop`,
    hint: 'peel first, then accumulate',
  })
}
