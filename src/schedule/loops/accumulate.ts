/** Segmented reduction: iterations that combine into one element do so in registers first (`accumulate`). */

import { type Groups, groupsOf, sharesOf } from '../../analysis/balanced-shares.ts'
import { isPerfect, type Segments, segmentsOf } from '../../analysis/segmented-loops.ts'
import { type Found, findLoop, replaceLoop } from '../../ir/definitions.ts'
import { readsMemory } from '../../ir/expr-tree.ts'
import type { For, LoopMode, Shares } from '../../ir/loops.ts'
import { printExpr } from '../../ir/print-stage2.ts'
import { type Body, rewriteStmts, stmt } from '../../ir/tree.ts'
import * as arg from '../arguments.ts'
import { carryOut, refuseShares } from '../carry-out.ts'
import { checkConstantExtent, checkFactor, checkSerial, checkUsedAlone } from '../checks.ts'
import type { Context } from '../context.ts'
import type { LoopRef } from '../loop-ref.ts'
import { primitive } from '../primitive.ts'
import { listedRows } from '../samples.ts'

type Accumulate = LoopMode & { readonly kind: 'accumulate' }

/** Registers of a thread that sums may take. */
const MOST_SUMS = 64

/**
 * `accumulate C over s`: what neighbouring iterations of `s` combine into one element of `C` is combined in registers;
 * the element is updated where the next one has another, and at the end. For loops over elements that are sorted by
 * what they combine into: a thread's share of the nonzeros, most of which are of one row.
 *
 * `by 4` computes the values of four iterations before it combines them: their loads are under way together. `by 1` is what it
 * does without.
 *
 * Where `s` runs over a share of the positions of compressed rows, rows that lie within one share need no atomic update.
 * `within t`: the shares of a block meet in shared memory first. `-> K`: what a share (or a block) has of a row that began
 * before it goes to `K`, and a nest after this one adds it in a fixed order; nothing is updated atomically.
 *
 * Loops inside that run over different elements keep a register for each. Refused where a sum in registers would not
 * be what goes to the element.
 */
export const accumulate = primitive({
  word: 'accumulate',
  call: "accumulate('C', 'j', 4)",
  takes: [
    arg.buffer('buffer'),
    'over',
    arg.loop('loop'),
    arg.optional('by', arg.integer('by')),
    arg.optional('within', arg.loop('within')),
    arg.optional('->', arg.newBuffer('into')),
  ],
  given: (
    buffer: string,
    over: LoopRef,
    by?: number,
    more?: { readonly within?: LoopRef; readonly into?: string },
  ) => ({ buffer, loop: over, by, ...arg.options('accumulate', more, ['within', 'into']) }),
  apply(cx, step) {
    const found = cx.loop(step.loop)
    const over = found.loop
    const target = cx.buffer(step.buffer)
    checkSerial(cx, over, 'accumulate over')
    const segments = segmentsFor(cx, over, target.name)
    const sums = segments.inner.reduce((n, l) => n * (l.extent.kind === 'const' ? l.extent.value : 1), 1)
    if (sums > MOST_SUMS)
      cx.refuse({
        code: 'schedule/too-many-registers',
        message: `${sums} elements of ${target.name} would need ${sums} registers`,
        loops: [over, ...segments.inner],
        expected: `at most ${MOST_SUMS}`,
        hint: `split ${segments.inner[0]!.name} and reorder the outer loop around ${over.name}`,
      })
    const by = step.by ?? 1
    checkFactor(cx, by, 1, 'the number of values at a time', over)
    if (by > 1) checkBatches(cx, over, segments, by)
    const shares = sharesOf(over, found.path, segments, cx.kernel.buffers)
    const mode: Accumulate =
      typeof shares === 'string'
        ? { kind: 'accumulate', by }
        : { kind: 'accumulate', by, shares: { search: shares.search, length: shares.length } }
    const own = (marked: Accumulate): Body =>
      replaceLoop(cx.kernel.body, over.var, (l) => stmt({ ...l, mode: marked }))
    if (step.within === undefined && step.into === undefined) return { body: own(mode) }
    if (typeof shares === 'string') return refuseShares(cx, found, shares)
    const groups = step.within === undefined ? undefined : groupsIn(cx, found, step.within, shares, segments)
    const grouped: Accumulate = groups ? { ...mode, within: groups.loop.var } : mode
    if (step.into === undefined) return { body: own(grouped) }
    checkUnused(cx, found, segments)
    const { start, buffer, fixup } = carryOut(cx, found, segments, shares, groups, step.into)
    const body = own({ ...grouped, carry: buffer.name }).flatMap((top): Body => {
      if (!findLoop([top], over.var)) return [top]
      const rewritten = rewriteStmts([top], {
        stmt: (s) => {
          if (s.kind === 'for' && s.var === over.var) return [...start, s]
          // Loops around may be bound: no two threads update one element.
          const update = s.kind === 'reduce' && s.targets[0]!.buffer === target.name
          return update ? stmt({ ...s, atomic: true }) : undefined
        },
      })
      return [...rewritten, fixup]
    })
    return { body, buffers: [buffer] }
  },
  example: {
    before: listedRows,
    step: { kind: 'accumulate', buffer: 'C', loop: 'p' },
    after: `\
for p in 0..p_count  reduce  @accumulate
  for f in 0..4
    C[rows[p], f] += A[p, f]`,
  },
})

/** Batches divide the loop, which holds nothing but the reduction. */
function checkBatches(cx: Context, over: For, segments: Segments, by: number): void {
  const extent = checkConstantExtent(cx, over, 'values at a time need a constant extent')
  const perfect = isPerfect(over, segments)
  if (extent % by === 0 && by <= MOST_SUMS && perfect) return
  cx.refuse({
    code: 'schedule/no-batches',
    message: perfect
      ? `${by} values at a time do not divide the ${extent} iterations of ${over.name}`
      : `${over.name} contains other statements than the reduction`,
    loops: [over, ...segments.inner],
    expected: `a loop whose extent is a multiple of the number of values, at most ${MOST_SUMS}`,
  })
}

function groupsIn(
  cx: Context,
  { loop, path }: Found,
  within: LoopRef,
  shares: Shares,
  { inner }: Segments,
): Groups {
  // A share that leaves out the beginning of its first row takes another one for it, and one that leaves out all has no rest.
  const asking = [...path, loop, ...inner].find((l) => l.guards.some(readsMemory))
  if (asking)
    cx.refuse({
      code: 'schedule/no-shares',
      message: `a condition on data (${printExpr(asking.guards.find(readsMemory)!)}) skips positions of chunks`,
      loops: [asking],
      expected: 'chunks of which every position is combined',
      hint: 'put the condition into the value, with `select`, or leave out `within`',
    })
  const group = cx.loop(within).loop
  const groups = groupsOf(shares, group.var, path, loop)
  if (typeof groups !== 'string') return groups
  return cx.refuse({
    code: 'schedule/no-groups',
    message: `accumulate over ${loop.name} within ${group.name}: ${groups}`,
    loops: [...path, loop],
    expected: 'the loop over the chunks of a block, bound to threads together with all its inner loops',
    hint: 'bind first',
  })
}

/** What is carried is not in the elements yet where the nest ends. */
function checkUnused(cx: Context, { loop }: Found, { reduce }: Segments): void {
  const top = cx.kernel.body.filter((s) => findLoop([s], loop.var))
  checkUsedAlone(cx, top, reduce, [loop])
}

function segmentsFor(cx: Context, over: For, target: string): Segments {
  const segments = segmentsOf(over)
  if (typeof segments === 'string')
    return cx.refuse({
      code: 'schedule/no-segments',
      message: `accumulate over ${over.name}: ${segments}`,
      loops: [over],
      expected: `one reduction into ${target} whose element changes with ${over.name}`,
      hint: 'reorder first: bound loops and other reductions must be outside',
    })
  const targets = segments.reduce.targets.map((t) => t.buffer)
  if (!targets.includes(target))
    cx.refuse({
      code: 'schedule/no-segments',
      message: `${over.name} combines into ${targets.join(' and ')}, not into ${target}`,
      loops: [over],
      expected: `accumulate ${targets[0]}`,
    })
  return segments
}
