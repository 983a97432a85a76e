/** Consumers that combine: gates, biases and scattered sums at the end of a complete tile. */

import { accessesOf, type BufferAccess } from '../../ir/accesses.ts'
import { allocations } from '../../ir/definitions.ts'
import type { Expr } from '../../ir/expr.ts'
import { mentions } from '../../ir/expr-tree.ts'
import type { For, Reduce, Stmt } from '../../ir/loops.ts'
import { initsOf } from '../../ir/reductions.ts'
import type { Context } from '../context.ts'

/** The loops from the nest's top on that stand directly inside of each other and run over different elements. */
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
 * The loops that run over what is read. What only combines does so in any order: then reduction loops are among them.
 */
export function consumed(top: For, reads: readonly BufferAccess[]): readonly For[] {
  const spatial = perfectChain(top)
  if (!updatesOf(top).every((u) => u)) return spatial
  const all = perfectChain(top, true)
  const last = all.findLastIndex((l) => reads.some((r) => r.index.some((e) => mentions(e, l.var))))
  return all.slice(0, Math.max(spatial.length, last + 1))
}

/** What a nest does to buffers from outside: reductions, and nothing for writes of other kinds. */
const updatesOf = (top: For): readonly (Reduce | undefined)[] => {
  const local = allocations([top])
  return accessesOf([top])
    .filter((a) => a.mode === 'write' && !local.has(a.buffer))
    .map(({ stmt: s }) => (s.kind === 'reduce' ? s : undefined))
}

/** Blocks and threads that combine into one element do so atomically. */
export function checkCombines(cx: Context, consumer: For, loops: readonly For[]): void {
  const bound = loops.find((l) => l.mode.kind !== 'serial')
  const plain = bound && updatesOf(consumer).find((u) => !u?.atomic)
  if (!bound || !plain) return
  const target = plain.targets[0]!.buffer
  cx.refuse({
    code: 'schedule/blocks-combine',
    message: `iterations of ${bound.name} would concurrently combine into the same elements of ${target}`,
    loops: [bound, consumer],
    hint: `atomic ${target} first`,
  })
}

/**
 * What the consumer starts itself starts before the outermost loop that it combines over: all of that loop's iterations reach the
 * same elements, under no condition.
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
  cx.refuse({
    code: 'schedule/starts-in-reduction',
    message: `${consumer.nest} initialises ${buffer}, and a condition within ${(by ?? combining[0]!).name} selects its elements`,
    loops: [by ?? combining[0]!, consumer],
    hint: `leave ${consumer.nest} a separate nest, or atomic ${buffer} first`,
  })
}

/** A consumer at its new place: the loops around that it combines over, those over elements, and what is asked inside of them. */
interface Placed {
  readonly combining: readonly For[]
  readonly elements: readonly For[]
  readonly conditions: readonly Expr[]
}

/** Sums that start within loops which become reduction loops would be started before those: in a tile they start inside. */
export function checkStartsInside(cx: Context, producer: Stmt, consumer: For, loops: readonly For[]): void {
  for (const { reduce, path } of initsOf([producer])) {
    const by = loops.find((l) => path.includes(l))
    if (!by) continue
    const { buffer } = reduce.targets[0]!
    cx.refuse({
      code: 'schedule/starts-in-reduction',
      message: `${buffer} would be reset within ${by.name}, which becomes a reduction loop of ${consumer.nest}`,
      loops: [by, consumer],
      hint: `cache_write ${buffer} at the loop first`,
    })
  }
}
