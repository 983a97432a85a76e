/** Loop binding: iterations are mapped to blocks and threads of a launch (`bind`). */

import { fail, failWith } from '../../../ast/diagnostics/diagnostic.ts'
import { expectArgument, isRecord } from '../../../ast/diagnostics/expect-argument.ts'
import { unknownAxis } from '../../../ast/parse/checks.ts'
import type { Expr, ThreadAxis } from '../../../ir/expressions/expr.ts'
import { add, div, lt, max, min, mul, sub, THREAD_AXES, variable } from '../../../ir/expressions/expr.ts'
import { levelOf } from '../../../ir/instructions/hardware-axes.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import { isReadOnly } from '../../../ir/statements/accesses.ts'
import { type LoopLocation, loopsOf, replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For, Reduce } from '../../../ir/statements/loops.ts'
import { type Body, stmt } from '../../../ir/statements/tree.ts'
import { checkConstantExtent, checkOrderFree, checkSerial, overParams } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'

/** Bindings such as `{ io: 'block.x', ii: 'thread.x' }`, or pairs if the loops are handles. */
type Bindings = Readonly<Record<string, ThreadAxis>> | readonly (readonly [LoopRef, ThreadAxis])[]

/**
 * `bind i to block.x`: iterations run in parallel, one in each block or thread. A thread axis needs a constant extent.
 * A block axis needs an extent over parameters, or an extent that the kernel counts: the grid then has the worst-case
 * size, and surplus blocks end at once. Block-bound loops are outermost. Iterations must be independent, but may
 * combine values: across the threads of a block, or atomically across blocks.
 */
export const bind = primitive({
  word: 'bind',
  call: "bind({ io: 'block.x', ii: 'thread.x' })",
  takes: [arg.bindings('bindings')],
  given: (loops: Bindings) => ({ bindings: pairsOf(loops).map(([loop, to]) => ({ loop, to })) }),
  apply(cx, step) {
    let here = cx
    const found = step.bindings.map((b) => ({ ...cx.loop(b.loop), to: b.to }))
    for (const f of found.sort((a, b) => a.path.length - b.path.length)) {
      const body = bindLoop(here, here.loop({ var: f.loop.var }), f.to)
      here = here.on({ ...here.kernel, body })
    }
    return { body: here.kernel.body }
  },
})

function pairsOf(loops: Bindings): readonly (readonly [LoopRef, ThreadAxis])[] {
  const expected = "loops with thread axes: { io: 'block.x', ii: 'thread.x' }"
  const pairs = Array.isArray(loops) ? loops : isRecord(loops) ? Object.entries(loops) : [null]
  expectArgument(
    pairs.every((p) => Array.isArray(p)),
    'what is bound',
    loops,
    expected,
  )
  if (pairs.length === 0) failWith('api/argument', 'bind is given no loop', { expected })
  for (const [, to] of pairs)
    if (!(THREAD_AXES as readonly unknown[]).includes(to))
      fail({ code: 'schedule/bad-step', ...unknownAxis(to) })
  return pairs
}

function bindLoop(cx: Context, { loop, path }: LoopLocation, to: ThreadAxis): Body {
  checkSerial(cx, loop, 'bind')
  checkAxisFree(cx, loop, path, to)
  const known = overParams(cx, loop.extent) || levelOf(to) === 'thread'
  const most = known ? undefined : mostOf(cx, loop.extent)
  if (levelOf(to) === 'thread') checkConstantExtent(cx, loop, `${to} needs a constant extent`)
  else if (!most) checkBlockExtent(cx, loop, to)
  const plain = checkOrderFree(cx, loop, 'bind').filter((r) => !r.atomic)
  if (levelOf(to) === 'block') checkAtomic(cx, loop, to, plain)
  else checkTogether(cx, loop, path, plain)
  const mode = { kind: 'bind', to } as const
  return replaceLoop(cx.kernel.body, loop.var, (l) =>
    most
      ? stmt({ ...l, extent: most, guards: [lt(variable(l.var), l.extent), ...l.guards], mode })
      : stmt({ ...l, mode }),
  )
}

/**
 * Returns an upper bound, over parameters, of an extent that rises with counts of the kernel: capacities in place of
 * counts. Returns undefined if there is no bound. Sizes and counts in extents are not negative.
 */
function mostOf(cx: Context, extent: Expr): Expr | undefined {
  if (overParams(cx, extent)) return extent
  if (extent.kind === 'load') return capacityOf(cx, extent.buffer)
  if (extent.kind !== 'binary') return undefined
  const { op, b } = extent
  const isConstant = b.kind === 'const' && b.value > 0
  const most = mostOf(cx, extent.a)
  const other = mostOf(cx, b)
  if (op === 'min') return most && other ? min(most, other) : (most ?? other)
  if (!most || (op !== 'sub' && !other)) return undefined
  if (op === 'sub') return overParams(cx, b) ? sub(most, b) : most
  if (op === 'div') return isConstant ? div(most, b) : undefined
  if (op === 'mul') return isNatural(extent.a) && isNatural(b) ? mul(most, other!) : undefined
  return op === 'add' || op === 'max' ? { add, max }[op](most, other!) : undefined
}

const isNatural = (e: Expr): boolean => e.kind !== 'const' || e.value >= 0

/** Returns the maximum of a count of the kernel, for all lists or for one; undefined if the buffer is not a count. */
function capacityOf(cx: Context, name: string): Expr | undefined {
  const counts = cx.kernel.buffers.find((b) => b.name === name)
  if (!counts || isReadOnly(counts)) return undefined
  const parts = cx.kernel.runtimeLists?.flatMap((f) => f.parts) ?? []
  return counts.positions ?? parts.find((p) => p.counts === name)?.extent
}

function checkAxisFree(cx: Context, loop: For, path: readonly For[], to: ThreadAxis): void {
  const other = [...path, ...loopsOf(loop.body)].find((l) => l.mode.kind === 'bind' && l.mode.to === to)
  if (!other) return
  cx.refuse('schedule/axis-taken', [other, loop], {
    message: `${other.name} is already bound to ${to}`,
    hint: `bind ${loop.name} to another axis`,
  })
}

function checkBlockExtent(cx: Context, loop: For, to: ThreadAxis): void {
  if (overParams(cx, loop.extent)) return
  cx.refuse('schedule/extent-not-known', [loop], {
    message: `${to} needs an extent that is known before the launch, and that of ${loop.name} is ${printExpr(loop.extent)}`,
    expected: 'an extent over sizes',
    hint: `bind a loop around ${loop.name}, or fuse the axes so that a single loop runs over the positions`,
  })
}

/** Blocks cannot wait for each other. */
function checkAtomic(cx: Context, loop: For, to: ThreadAxis, plain: readonly Reduce[]): void {
  const [first] = plain
  if (!first) return
  const target = first.targets[0]!.buffer
  cx.refuse('schedule/blocks-combine', [loop], {
    message: `iterations of ${loop.name} combine into the same elements of ${target}, and ${to} would run the iterations on different blocks`,
    hint: `atomic ${target} or combine ${target} first`,
  })
}

/**
 * Throws `schedule/order-matters` if statements in the outermost reduction loop use the sum across threads, which is
 * complete after this loop. (`checkShares` checks in every step that the elements do not change on the way.)
 */
function checkTogether(cx: Context, loop: For, path: readonly For[], plain: readonly Reduce[]): void {
  if (plain.length === 0) return
  for (const l of path) if (l.reduce) checkOrderFree(cx, l, `bind ${loop.name}`)
}
