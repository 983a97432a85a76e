/** Epilogues that combine: gates, biases and scattered sums after a complete tile. */

import type { Expr } from '../../../ir/expressions/expr.ts'
import { mentions } from '../../../ir/expressions/expr-tree.ts'
import { accessesOf, type BufferAccess } from '../../../ir/statements/accesses.ts'
import { allocations } from '../../../ir/statements/definitions.ts'
import type { For, Reduce, Stmt } from '../../../ir/statements/loops.ts'
import { initsOf } from '../../../ir/statements/reductions.ts'
import type { Context } from '../../state/context.ts'

/**
 * Returns the perfectly nested serial loops from `top` on; without `combining`, only up to the first reduction loop.
 */
export function perfectChain(top: For, combining = false): readonly For[] {
  const out: For[] = []
  for (let s: Stmt | undefined = top; s?.kind === 'for' && s.mode.kind === 'serial'; ) {
    if (s.reduce && !combining) break
    out.push(s)
    s = s.body.length === 1 ? s.body[0] : undefined
  }
  return out
}

/**
 * Returns the consumer's loops over its inputs. If the loop nest only combines, its order is free, and its reduction
 * loops are included.
 */
export function consumed(top: For, reads: readonly BufferAccess[]): readonly For[] {
  const spatial = perfectChain(top)
  if (!updatesOf(top).every((u) => u)) return spatial
  const all = perfectChain(top, true)
  const last = all.findLastIndex((l) => reads.some((r) => r.index.some((e) => mentions(e, l.var))))
  return all.slice(0, Math.max(spatial.length, last + 1))
}

/**
 * Returns the writes of a loop nest to buffers from outside: the reduction, or undefined for a write of another kind.
 */
const updatesOf = (top: For): readonly (Reduce | undefined)[] => {
  const local = allocations([top])
  return accessesOf([top])
    .filter((a) => a.mode === 'write' && !local.has(a.buffer))
    .map(({ stmt: s }) => (s.kind === 'reduce' ? s : undefined))
}

/** Throws `schedule/blocks-combine` if blocks or threads would combine into one element without atomics. */
export function checkCombines(cx: Context, consumer: For, loops: readonly For[]): void {
  const bound = loops.find((l) => l.mode.kind !== 'serial')
  const plain = bound && updatesOf(consumer).find((u) => !u?.atomic)
  if (!bound || !plain) return
  const target = plain.targets[0]!.buffer
  cx.refuse('schedule/blocks-combine', [bound, consumer], {
    message: `iterations of ${bound.name} would concurrently combine into the same elements of ${target}`,
    hint: `atomic ${target} first`,
  })
}

/**
 * Throws `schedule/starts-in-reduction` if the consumer initialises elements under conditions inside of the loops that
 * it combines over. The initialisation is before the outermost such loop, so all iterations of this loop must reach the
 * same elements, unconditionally.
 */
export function checkOwnStarts(
  cx: Context,
  consumer: For,
  { combining, elements, conditions }: Placed,
): void {
  const starts = updatesOf(consumer).find((u) => u?.init)
  if (!starts || combining.length === 0) return
  const asked = [...conditions, ...elements.flatMap((l) => [l.extent, ...l.guards])]
  const by = combining.find((l) => asked.some((e) => mentions(e, l.var)))
  if (!by && conditions.length === 0) return
  const { buffer } = starts.targets[0]!
  cx.refuse('schedule/starts-in-reduction', [by ?? combining[0]!, consumer], {
    message: `${consumer.nest} initialises ${buffer}, and a condition within ${(by ?? combining[0]!).name} selects the elements`,
    hint: `leave ${consumer.nest} a separate loop nest, or atomic ${buffer} first`,
  })
}

/**
 * A consumer at its new place: the enclosing loops that it combines over, its loops over elements, and the conditions
 * inside of the loops over elements.
 */
interface Placed {
  readonly combining: readonly For[]
  readonly elements: readonly For[]
  readonly conditions: readonly Expr[]
}

/**
 * Throws `schedule/starts-in-reduction` if the producer initialises sums inside of loops that become reduction loops:
 * the initialisation would move before these loops. Sums in a local tile are initialised inside.
 */
export function checkStartsInside(cx: Context, producer: Stmt, consumer: For, loops: readonly For[]): void {
  for (const { reduce, path } of initsOf([producer])) {
    const by = loops.find((l) => path.includes(l))
    if (!by) continue
    const { buffer } = reduce.targets[0]!
    cx.refuse('schedule/starts-in-reduction', [by, consumer], {
      message: `${buffer} would be reset within ${by.name}, which becomes a reduction loop of ${consumer.nest}`,
      hint: `cache_write ${buffer} at the loop first`,
    })
  }
}
