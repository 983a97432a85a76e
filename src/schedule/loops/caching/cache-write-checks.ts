/** Legality of caching writes: conditions under which the writes of an iteration may go to a local buffer first. */
import type { Condition } from '../../../analysis/dependence/loop-writes.ts'
import { conditionsAround, isPlain, writtenIn } from '../../../analysis/dependence/loop-writes.ts'
import { readsSome } from '../../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../../ir/expressions/structural-equality.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import { writesOf } from '../../../ir/statements/accesses.ts'
import { allocatedNames } from '../../../ir/statements/bindings.ts'
import { findLoop, replaceLoop } from '../../../ir/statements/definitions.ts'
import type { Buffer, For, Reduce, Stmt, Store } from '../../../ir/statements/loops.ts'
import { type Body, rewriteStmts, stmt } from '../../../ir/statements/tree.ts'
import { type Use, usesOf } from '../../legality/buffer-uses.ts'
import { type Footprint, hiddenLoop, neededBy } from '../../legality/footprint.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import type { Context } from '../../state/context.ts'

/**
 * Returns the writers of the buffer inside of the loop, in order: one statement, or several reductions of the same
 * targets by one reducer, of which only the first may initialise them. Throws `schedule/not-written` or
 * `schedule/several-writers`.
 */
export function checkWriters(
  cx: Context,
  loop: For,
  buffer: Buffer,
  uses: readonly Use[],
): readonly [Store | Reduce, ...Reduce[]] {
  const found = uses.flatMap((u) => (u.mode === 'write' ? [u.stmt] : []))
  const [writer, ...others] = found
  if (allocatedNames(loop.body).has(buffer.name) || (writer?.kind !== 'store' && writer?.kind !== 'reduce'))
    return cx.refuse('schedule/not-written', [loop], {
      message: `${loop.name} does not write ${buffer.name} from outside`,
      hint: 'cache at a loop around the writes',
    })
  const targets = (s: Reduce): string => s.targets.map((t) => t.buffer).join()
  const isAlike = (s: Stmt): s is Reduce =>
    s.kind === 'reduce' &&
    writer.kind === 'reduce' &&
    !s.init &&
    s.reducer.name === writer.reducer.name &&
    s.atomic === writer.atomic &&
    targets(s) === targets(writer)
  if (!others.every(isAlike) || new Set(found).size < found.length)
    return refuseSeveral(
      cx,
      loop,
      buffer,
      found.length,
      'other than by combining the same elements by one reducer',
    )
  return [writer, ...others]
}

function refuseSeveral(cx: Context, loop: For, buffer: Buffer, count: number, how: string): never {
  return cx.refuse('schedule/several-writers', [loop], {
    message: `${count} statements inside of ${loop.name} write ${buffer.name}, ${how}`,
    hint: 'cache at an inner loop that contains a single write',
  })
}

interface Together {
  readonly scattered: readonly For[]
  /** True if the first writer initialises the local buffer. */
  readonly whole: boolean
  readonly written: readonly Use[]
  /** Conditions of each writer that do not depend on the combined values. */
  readonly conditions: readonly (readonly Condition[])[]
}

/** Throws `schedule/several-writers` unless the writers share one local buffer that is written back once. */
export function checkTogether(
  cx: Context,
  loop: For,
  buffer: Buffer,
  { scattered, whole, written, conditions }: Together,
): void {
  const refuse = (how: string): never => refuseSeveral(cx, loop, buffer, written.length, how)
  if (scattered.length > 0 || written.some((u) => neededBy(u).some((l) => l.reduce)))
    refuse('and which element it is changes with a reduction loop')
  const key = (list: readonly Condition[]): string =>
    list.map((c) => `${keyOf(c.cond)} ${c.absent ?? ''}`).join(' ; ')
  const [first, ...others] = conditions.map(key)
  const { path, stmt } = written[0]!
  const around = conditionsAround(loop.body, path.find((l) => l.reduce) ?? stmt)
  if (others.some((o) => o !== first) || (whole && around.length > 0)) refuse('under different conditions')
}

/** Throws `schedule/not-every-element` unless every element that is written back has been stored. */
export function checkEveryElement(cx: Context, loop: For, use: Use, print: Footprint, buffer: Buffer): void {
  const extra = hiddenLoop(use, print)
  if (!use.conditional && !extra) return
  cx.refuse('schedule/not-every-element', extra ? [loop, extra] : [loop], {
    message: extra
      ? `${buffer.name} is written inside ${extra.name}, which may not run, and the copy would always be written back`
      : `${loop.name} writes ${buffer.name} under a condition, and the copy would always be written back`,
    hint: extra
      ? `cache further inside, at ${extra.name}`
      : `cache at a loop inside of the condition, or do not cache ${buffer.name}`,
  })
}

/**
 * Throws `schedule/not-every-element` if a condition of the initialisation may change before the write-back. Conditions
 * inside of reductions do not matter.
 */
export function checkAskedAgain(cx: Context, loop: For, use: Use, until: Body, buffer: Buffer): void {
  const written = writesOf(until)
  const around = conditionsAround(loop.body, use.path.find((l) => l.reduce) ?? use.stmt)
  const changed = around.find((c) => readsSome(c.cond, written))
  if (!changed) return
  cx.refuse('schedule/not-every-element', [loop], {
    message: `whether ${loop.name} writes ${buffer.name} depends on ${printExpr(changed.cond)}, which changes before the write-back`,
    hint: `cache at a loop inside of the condition, or do not cache ${buffer.name}`,
  })
}

function refuseScatter(cx: Context, loop: For, by: For, buffer: Buffer): never {
  return cx.refuse('schedule/scattered', [loop, by], {
    message: `the element of ${buffer.name} changes with the reduction loop ${by.name}`,
    hint: `cache at ${by.name} instead`,
  })
}

/** Throws `schedule/read-too` if the loop reads the buffer before the local buffer has the whole value. */
export function checkReads(
  cx: Context,
  loop: For,
  buffer: Buffer,
  uses: readonly Use[],
  writerChild: number,
  whole: boolean,
): void {
  const early = uses.find((u) => u.mode === 'read' && (!whole || u.child <= writerChild))
  if (!early) return
  cx.refuse('schedule/read-too', [loop], {
    message: whole
      ? `${loop.name} reads ${buffer.name} before the value is complete`
      : `${loop.name} reads ${buffer.name}, which iterations of other loops still write`,
    hint: 'cache at the loop around only the write',
  })
}

// Tiles whose rows come from an index list, inside of reduction loops. Iterations may conflict in an element
// of the buffer, but never in an element of the tile. In the tile, such loops run over different elements;
// the write-back combines them again.

interface Tile {
  /** The context in which the loops of the tile are not reduction loops. */
  readonly cx: Context
  /** The loops of the tile that are reduction loops of the kernel. */
  readonly scattered: readonly For[]
}

/** Returns the kernel in which the loop combines into a tile instead of the buffer. Throws `schedule/scattered`. */
export function asTile(cx: Context, ref: LoopRef, buffer: string): Tile {
  const { loop } = cx.loop(ref)
  const write = usesOf(loop.body, buffer).find((u) => u.mode === 'write')
  const scattered = write ? neededBy(write).filter((l) => l.reduce) : []
  if (!write || scattered.length === 0) return { cx, scattered: [] }
  const { stmt: writer } = write
  for (const l of scattered) {
    // A reduction that initialises its elements must initialise each element once, and it is unknown here which
    // iteration is first.
    if (writer.kind !== 'reduce' || writer.init || !isPlain(l)) refuseScatter(cx, loop, l, cx.buffer(buffer))
  }
  const vars = new Set(scattered.map((l) => l.var))
  const apart = (body: Body): Body =>
    rewriteStmts(body, {
      stmt: (s) => (s.kind === 'for' && vars.has(s.var) ? stmt<For>({ ...s, reduce: false }) : undefined),
    })
  const body = replaceLoop(cx.kernel.body, loop.var, (l) => stmt<For>({ ...l, body: apart(l.body) }))
  return { cx: cx.on({ ...cx.kernel, body }), scattered }
}

/** Returns the loops that write the tile back, as reduction loops: its rows may be the same element. */
export const meetingAgain = (print: Footprint, scattered: readonly For[]): Footprint => ({
  ...print,
  loops: print.loops.map((l) => (scattered.some((x) => x.var === l.var) ? { ...l, reduce: true } : l)),
})

/** Throws `schedule/not-one-reduction` if iterations without conflicts in the targets conflict elsewhere. */
export function checkOthersApart(cx: Context, loops: readonly For[], body: Body, hint: string): void {
  for (const l of loops) {
    const shared = writtenIn(cx.kernel, findLoop(body, l.var)!.loop).find((w) => !w.disjoint)
    if (shared)
      cx.refuse('schedule/not-one-reduction', [l], {
        message: `iterations of ${l.name} also share elements of ${shared.buffer}`,
        hint,
      })
  }
}
