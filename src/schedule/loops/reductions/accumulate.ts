/** Segmented reduction: iterations that combine into one element do so in registers first (`accumulate`). */

import { type Groups, groupsOf, sharesOf } from '../../../analysis/loops/balanced-partition.ts'
import { isPerfect, type Segments, segmentsOf } from '../../../analysis/loops/segmented-loops.ts'
import { readsMemory } from '../../../ir/expressions/expr-tree.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import { findLoop, type LoopLocation, replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For, LoopMode, WorkPartition } from '../../../ir/statements/loops.ts'
import { type Body, rewriteStmts, stmt } from '../../../ir/statements/tree.ts'
import { checkConstantExtent, checkFactor, checkSerial, checkUsedAlone } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'
import { carryOut, refuseShares } from './carry-out.ts'

type Accumulate = LoopMode & { readonly kind: 'accumulate' }

const MOST_SUMS = 64

/**
 * `accumulate C over s`: values that consecutive iterations of `s` combine into one element of `C` are combined in
 * registers. The element is updated when the next iteration has a different element, and at the end. Use it for loops
 * over elements that are sorted by their target, such as a thread's chunk of the nonzeros, most of which are in one
 * row.
 *
 * `by 4` computes the values of four iterations before it combines them, so that their loads are in flight together;
 * `by 1` is the default.
 * If `s` runs over a chunk of the positions of compressed rows, rows inside of one chunk need no atomic update.
 * `within t`: the chunks of a block are combined in shared memory first.
 * `-> K`: the partial result of a chunk (or block) for a row that began earlier goes to `K`, and a loop nest after this
 * one adds it in a fixed order; no update is atomic.
 * Inner loops over different elements keep a register for each element. The step is illegal if a sum in registers would
 * not equal the values added to the element.
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
      cx.refuse('schedule/too-many-registers', [over, ...segments.inner], {
        message: `${sums} elements of ${target.name} would need ${sums} registers`,
        expected: `at most ${MOST_SUMS}`,
        hint: `split ${segments.inner[0]!.name} and reorder the outer loop around ${over.name}`,
      })
    const by = step.by ?? 1
    checkFactor(cx, by, 'the number of values at a time', over)
    if (by > 1) checkBatches(cx, over, segments, by)
    const shares = sharesOf(over, found.path, segments, cx.kernel.buffers)
    const mode: Accumulate =
      typeof shares === 'string'
        ? { kind: 'accumulate', by }
        : { kind: 'accumulate', by, partition: { search: shares.search, length: shares.length } }
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
          // Atomic so that enclosing loops may be bound, although no two threads update one element.
          const update = s.kind === 'reduce' && s.targets[0]!.buffer === target.name
          return update ? stmt({ ...s, atomic: true }) : undefined
        },
      })
      return [...rewritten, fixup]
    })
    return { body, buffers: [buffer] }
  },
})

function checkBatches(cx: Context, over: For, segments: Segments, by: number): void {
  const extent = checkConstantExtent(cx, over, 'values at a time need a constant extent')
  const perfect = isPerfect(over, segments)
  if (extent % by === 0 && by <= MOST_SUMS && perfect) return
  cx.refuse('schedule/no-batches', [over, ...segments.inner], {
    message: perfect
      ? `${by} values at a time do not divide the ${extent} iterations of ${over.name}`
      : `${over.name} contains other statements than the reduction`,
    expected: `a loop whose extent is a multiple of the number of values, at most ${MOST_SUMS}`,
  })
}

function groupsIn(
  cx: Context,
  { loop, path }: LoopLocation,
  within: LoopRef,
  shares: WorkPartition,
  { inner }: Segments,
): Groups {
  // A chunk that skips the beginning of its first row would mistake another row for it; a chunk that skips all
  // positions has no carry-out.
  const asking = [...path, loop, ...inner].find((l) => l.guards.some(readsMemory))
  if (asking)
    cx.refuse('schedule/no-shares', [asking], {
      message: `a condition on data (${printExpr(asking.guards.find(readsMemory)!)}) skips positions of chunks`,
      expected: 'chunks of which every position is combined',
      hint: 'put the condition into the value, with `select`, or leave out `within`',
    })
  const group = cx.loop(within).loop
  const groups = groupsOf(shares, group.var, path, loop)
  if (typeof groups !== 'string') return groups
  return cx.refuse('schedule/no-groups', [...path, loop], {
    message: `accumulate over ${loop.name} within ${group.name}: ${groups}`,
    expected: 'the loop over the chunks of a block, bound to threads together with the inner loops',
    hint: 'bind first',
  })
}

/** The targets lack the carried values until the fix-up. */
function checkUnused(cx: Context, { loop }: LoopLocation, { reduce }: Segments): void {
  const top = cx.kernel.body.filter((s) => findLoop([s], loop.var))
  checkUsedAlone(cx, top, reduce, [loop])
}

function segmentsFor(cx: Context, over: For, target: string): Segments {
  const segments = segmentsOf(over)
  if (typeof segments === 'string')
    return cx.refuse('schedule/no-segments', [over], {
      message: `accumulate over ${over.name}: ${segments}`,
      expected: `one reduction into ${target} whose element changes with ${over.name}`,
      hint: 'reorder first: bound loops and other reductions must be outside',
    })
  const targets = segments.reduce.targets.map((t) => t.buffer)
  if (!targets.includes(target))
    cx.refuse('schedule/no-segments', [over], {
      message: `${over.name} combines into ${targets.join(' and ')}, not into ${target}`,
      expected: `accumulate ${targets[0]}`,
    })
  return segments
}
