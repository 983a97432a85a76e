/**
 * Legality of producer-consumer fusion (`compute_at`): other uses of the produced buffers, and initialisation of sums.
 */

import { capacityCounts } from '../../../ir/coordinates/runtime-lists.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import { mentions } from '../../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import { accessesOf, type BufferAccess } from '../../../ir/statements/accesses.ts'
import { allocations, type LoopLocation, perfectNest } from '../../../ir/statements/definitions.ts'
import type { Buffer, For, Reduce, Stmt } from '../../../ir/statements/loops.ts'
import { initsOf } from '../../../ir/statements/reductions.ts'
import { type Body, walkStmts } from '../../../ir/statements/tree.ts'
import { loopNames } from '../../names/kernel-names.ts'
import type { Context } from '../../state/context.ts'
import { nestName } from '../nests/top-nests.ts'

/**
 * Returns the buffers that the producer writes. Throws `schedule/output-needed` for an output,
 * `schedule/used-elsewhere` for consumers outside of the loop, and `schedule/not-read` if the loop reads no such
 * buffer.
 */
export function checkProducts(cx: Context, producer: For, at: LoopLocation): ReadonlySet<string> {
  const { loop } = at
  const own = accessesOf([producer])
  const local = allocations([producer])
  const produced = new Set(own.flatMap((a) => (a.mode === 'write' && !local.has(a.buffer) ? [a.buffer] : [])))
  const inside = new Set<Stmt>()
  walkStmts([producer, ...loop.body], (s) => inside.add(s))
  for (const name of produced) {
    checkOutput(cx, producer, name)
    const elsewhere = accessesOf(cx.kernel.body).find(
      (a) => a.buffer === name && !inside.has(a.stmt) && a.stmt.kind !== 'fill',
    )
    if (elsewhere)
      cx.refuse('schedule/used-elsewhere', [producer, loop, ...elsewhere.path.slice(0, 1)], {
        message: `${name} is also used outside of ${loop.name}`,
        hint: aroundUses(cx, producer, at, elsewhere),
      })
  }
  if (!accessesOf(loop.body).some((a) => produced.has(a.buffer)))
    cx.refuse('schedule/not-read', [producer, loop], {
      message: `${loop.name} reads nothing that ${producer.nest} writes`,
      hint: 'choose a loop around the reads',
    })
  return produced
}

/** Returns a buffer that the producer writes. Throws `schedule/output-needed` for an output. */
export function checkOutput(cx: Context, producer: For, name: string): Buffer {
  const buffer = cx.buffer(name)
  if (buffer.role !== 'local')
    cx.refuse('schedule/output-needed', [producer], {
      message: `${producer.nest} writes ${name}, an output of the kernel`,
      expected: 'a loop nest that writes local buffers',
    })
  return buffer
}

/** Throws `schedule/order-matters` if a statement between producer and consumer writes an input of the producer. */
export function checkBetween(cx: Context, list: Body, producer: For, consumer: Stmt, loop: For): void {
  const reads = new Set(accessesOf([producer]).map((a) => a.buffer))
  const between = list.slice(list.indexOf(producer) + 1, list.indexOf(consumer) + 1)
  const written = accessesOf(between).find((a) => a.mode === 'write' && reads.has(a.buffer))
  if (!written) return
  cx.refuse('schedule/order-matters', [producer, loop], {
    message: `${producer.nest} uses ${written.buffer}, which is written before ${loop.name} is reached`,
    hint: `leave ${producer.nest} a separate loop nest`,
  })
}

function aroundUses(cx: Context, producer: For, at: LoopLocation, elsewhere: BufferAccess): string {
  const names = loopNames(cx.kernel.body)
  const uses = accessesOf(cx.kernel.body).filter(
    (a) => a.buffer === elsewhere.buffer && a.stmt.kind !== 'fill' && !a.path.includes(producer),
  )
  const around = at.path.findLast((l) => uses.every((a) => a.path.includes(l)))
  if (around) return `compute_at ${producer.nest} at ${names.get(around.var)}`
  const nests = new Set(uses.map((a) => a.path[0]?.nest))
  const loops = [...at.path, at.loop]
  const isIdentical = (a: BufferAccess): boolean =>
    a.mode === 'read' && loops.every((l, k) => a.path[k] && sameExpr(a.path[k].extent, l.extent))
  if (nests.size < 2 || !uses.every(isIdentical)) return `leave ${producer.nest} a separate loop nest`
  const joined = nestName(cx, [...nests] as string[], 'joined')
  const { nest, name } = at.loop
  // Joined loops have the names of the first nest.
  const first = uses[0]!.path[at.path.length]?.name ?? name
  return `join (${[...nests].join(', ')}) at ${nest}.${name}, then compute_at ${producer.nest} at ${joined}.${first}`
}

/**
 * Returns the reduction loop of the consumer, around or at the loop, that would repeat an initialisation of the
 * producer; undefined if there is no such loop. Sums are initialised before the outermost reduction loop, unless the
 * buffer is allocated inside.
 */
export function reductionAround(producer: For, consumer: Stmt, at: LoopLocation): For | undefined {
  if (initsOf([producer]).length === 0) return undefined
  const around = [...at.path, at.loop]
  return around.slice(Math.max(0, around.indexOf(consumer as For))).find((l) => l.reduce)
}

export function refuseStart(cx: Context, producer: For, reducing: For, at: LoopLocation): never {
  const names = loopNames(cx.kernel.body)
  const [loop, outer] = [at.loop, [...at.path, at.loop].find((_, k, all) => all[k + 1] === reducing)]
  const own = `compute_at ${producer.nest} at ${names.get(loop.var)} recompute: each iteration has memory of its own`
  return cx.refuse('schedule/starts-in-reduction', [producer, reducing], {
    message: `${producer.nest} would reset the sums in each iteration of the reduction loop ${reducing.name}`,
    hint: outer ? `compute_at ${producer.nest} at ${names.get(outer.var)}, or ${own}` : own,
  })
}

/** Skipped iterations would change counts that the host reads, and writes of elements that may not be stored. */
export function checkUnseen(cx: Context, producer: For, loop: For, produced: ReadonlySet<string>): void {
  const parts = cx.kernel.runtimeLists?.flatMap((f) => f.parts) ?? []
  const counts = [...capacityCounts(cx.kernel), ...parts.map((p) => p.counts)]
  const counted = counts.find((b) => produced.has(b))
  if (counted !== undefined)
    cx.refuse('schedule/used-elsewhere', [producer, loop], {
      message: `${counted} is read after the kernel has run`,
      hint: `leave ${producer.nest} a separate loop nest`,
    })
  walkStmts([producer], (s) => {
    if (s.kind !== 'if' || s.absent === undefined || !produced.has(s.absent)) return
    cx.refuse('schedule/lost-writes', [producer, loop], {
      message: `${producer.nest} may write elements that ${s.absent} does not store, which is a run-time error`,
      expected: 'writes of stored elements only',
      hint: `iterate ${producer.nest} … where (${printExpr(s.cond)})`,
    })
  })
}

// Epilogues that combine: gates, biases and scattered sums after a complete tile.

/** Returns the perfectly nested serial loops from `top` on; without `combining`, up to the first reduction loop. */
export function perfectChain(top: For, combining = false): readonly For[] {
  const loops = perfectNest(top)
  const end = loops.findIndex((l) => l.mode.kind !== 'serial' || (l.reduce && !combining))
  return end < 0 ? loops : loops.slice(0, end)
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

/** The writes of a loop nest to buffers from outside: the reduction, or undefined for a write of another kind. */
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
  const evaluated = [...conditions, ...elements.flatMap((l) => [l.extent, ...l.guards])]
  const by = combining.find((l) => evaluated.some((e) => mentions(e, l.var)))
  if (!by && conditions.length === 0) return
  const { buffer } = starts.targets[0]!
  cx.refuse('schedule/starts-in-reduction', [by ?? combining[0]!, consumer], {
    message: `${consumer.nest} initialises ${buffer}, and a condition within ${(by ?? combining[0]!).name} selects the elements`,
    hint: `leave ${consumer.nest} a separate loop nest, or atomic ${buffer} first`,
  })
}

/** A consumer at its new place; `conditions` are inside of its loops over elements. */
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
