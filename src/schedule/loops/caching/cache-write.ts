/** Caching of writes: an iteration writes to a local buffer until its end (`cache_write`). */

import type { Condition } from '../../../analysis/dependence/loop-writes.ts'
import { conditionsAround, hoistable, writtenIn } from '../../../analysis/dependence/loop-writes.ts'
import { capacityCounts } from '../../../ir/coordinates/runtime-lists.ts'
import { cast, type Expr, load } from '../../../ir/expressions/expr.ts'
import { mentionsSome } from '../../../ir/expressions/expr-tree.ts'
import { accessesOf, readsOf } from '../../../ir/statements/accesses.ts'
import { allocatedNames } from '../../../ir/statements/bindings.ts'
import { type LoopLocation, replaceLoop } from '../../../ir/statements/definitions.ts'
import type { Buffer, For, Reduce, Stmt, Store } from '../../../ir/statements/loops.ts'
import { retarget } from '../../../ir/statements/reductions.ts'
import { alloc, store, when } from '../../../ir/statements/statement-builders.ts'
import { type Body, replaceStmt, stmt } from '../../../ir/statements/tree.ts'
import { replaceLoads, type Use, usesOf } from '../../legality/buffer-uses.ts'
import { checkOneNest } from '../../legality/checks.ts'
import {
  checkSameLoops,
  checkStable,
  copyNest,
  type Footprint,
  footprint,
  hiddenLoop,
  localIndex,
  neededBy,
} from '../../legality/footprint.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'
import {
  asTile,
  checkAskedAgain,
  checkEveryElement,
  checkOthersApart,
  checkReads,
  checkTogether,
  checkWriters,
  meetingAgain,
} from './cache-write-checks.ts'
import { localCopy } from './read-copies.ts'

/**
 * `cache_write C at i in register -> Cr`: the writes of an iteration of `i` to `C` go to a local buffer, which is
 * written back at the end of the iteration. The local buffer has a dimension for each inner loop that the index depends
 * on (constant extents).
 * A reduction that is complete in one iteration starts at the identity in the local buffer and is then stored. A
 * reduction that continues in other iterations, or goes to rows of an index list, is combined into `C` by its reducer.
 * All targets of a tuple move together. Several statements may combine into the elements if only the first initialises
 * them. A local buffer of the kernel that only the iteration uses is replaced completely. If nothing reads any target, they
 * remain, because whether a definition reads a buffer must not decide which steps are legal; lowering removes them.
 */
export const cacheWrite = primitive({
  word: 'cache_write',
  call: "cacheWrite('C', 'i', 'register')",
  takes: [
    arg.buffer('buffer'),
    'at',
    arg.loop('at'),
    'in',
    arg.memory,
    arg.optional('->', arg.newBuffer('into')),
  ],
  given: (buffer: string, at: LoopRef, place: arg.MemoryScope, into?: string) => ({
    buffer,
    at,
    place,
    into,
  }),
  // Other loop nests may read a local buffer of the kernel, and a declared memory is not plain data.
  apply(given, step) {
    checkOneNest(given, given.loop(step.at).loop, 'cache_write')
    const { cx, scattered } = asTile(given, step.at, step.buffer)
    const at = cx.loop(step.at)
    const { loop } = at
    const asked = cx.buffer(step.buffer)
    const writers = checkWriters(cx, loop, asked, usesOf(loop.body, asked.name))
    const [writer] = writers
    const several = writers.length > 1
    const targets = writer.kind === 'store' ? [writer] : writer.targets
    const buffers = targets.map((t) => cx.buffer(t.buffer))
    const whole = writer.kind === 'store' || (writer.init && completeIn(cx, at, buffers))
    const starts = several && whole ? writers : [writer]
    const all = buffers.map((b) =>
      usesOf(loop.body, b.name).map((u) => (starts.some((w) => w === u.stmt) ? started(u, writer) : u)),
    )
    for (const [k, list] of all.entries()) checkWriters(cx, loop, buffers[k]!, list)
    const prints = buffers.map((b, k) => footprint(cx, at, b, writesFirst(all[k]!), step))
    checkSameLoops(cx, loop, prints, buffers)
    const written = all[0]!.filter((u) => u.mode === 'write')
    const use = written[0]!
    for (const p of prints) checkStable(cx, loop, p, use.child)
    // Without an inner reduction loop, the initialisation is at the statement and happens only with it.
    const startsAlone = use.path.every((l) => !l.reduce)
    if (writer.kind === 'store' || (whole && startsAlone)) checkEveryElement(cx, loop, use, prints[0]!, asked)
    for (const [k, list] of all.entries())
      checkReads(cx, loop, buffers[k]!, list, written.at(-1)!.child, whole)

    const locals = buffers.map((b, k): Buffer => {
      const named = step.into && (buffers.length === 1 ? step.into : `${step.into}_${b.name}`)
      const dtype = writer.kind === 'reduce' ? b.accumulate : b.dtype
      const name = named ? cx.claim(named) : cx.fresh(`${b.name}_${step.scope}`)
      return localCopy(cx, loop, b, step, { name, dtype, shape: prints[k]!.shape })
    })
    const hidden = use.conditional || hiddenLoop(use, prints[0]!) !== undefined
    // The element may exist under conditions only. They are evaluated again for the write-back.
    const until = loop.body.slice(use.child)
    const conditionsOf = (u: Use): readonly Condition[] => {
      checkAskedAgain(cx, loop, u, until, asked)
      const away = u.path.filter((l) => !neededBy(u).includes(l))
      return hoistable(conditionsAround(loop.body, u.stmt), away, until)
    }
    const [conditions, ...others] = written.map(conditionsOf) as [
      readonly Condition[],
      ...(readonly Condition[])[],
    ]
    if (several)
      checkTogether(cx, loop, asked, { scattered, whole, written, conditions: [conditions, ...others] })
    const before: Stmt[] = []
    let body: Body = loop.body
    const apart = writer.kind === 'reduce' && !whole && (several || (startsAlone && hidden))
    if (apart) before.push(...identities(cx, writer, locals, prints, step.scope))
    for (const [k, w] of writers.entries()) {
      const own = localWriter(
        w,
        locals,
        prints.map((p) => localIndex(p, written[k]!)),
        !apart && k === 0,
      )
      body = replaceStmt(body, w, () => own)
    }
    buffers.forEach((b, k) => {
      body = replaceLoads(body, b.name, (index, path) =>
        cast(load(locals[k]!.name, localIndex(prints[k]!, { index, path }), locals[k]!.dtype), b.dtype),
      )
    })
    const read = readsOf(cx.kernel.body)
    const replaced = whole && buffers.some((b) => read.has(b.name))
    const unused = replaced ? buffers.filter((b) => usedOnlyIn(cx, b, loop)).map((b) => b.name) : []
    const tiles = prints.map((p) => meetingAgain(p, scattered))
    const back = copyBack(cx, writer, buffers, locals, tiles, step.scope, whole, conditions).filter(
      (_, k) => !unused.includes(buffers[k]!.name),
    )
    checkOthersApart(cx, scattered, body, 'cache further inside, or fission the loop first')
    return {
      body: replaceLoop(cx.kernel.body, loop.var, (l) =>
        stmt({
          ...l,
          body: [...locals.map(alloc), ...before, ...body, ...back],
        }),
      ),
      unused,
    }
  },
})

/**
 * Returns the use without guards that do not apply to initialised elements. A reduction initialises its elements under
 * the guards that do not vary with its reduction loops; the other guards only decide which values are combined.
 */
function started(use: Use, writer: Store | Reduce): Use {
  if (writer.kind !== 'reduce' || !writer.init) return use
  const combined = new Set(use.path.flatMap((l) => (l.reduce ? [l.var] : [])))
  const decides = (g: Expr): boolean => !mentionsSome(g, combined)
  return { ...use, path: use.path.map((l) => (l.reduce ? l : { ...l, guards: l.guards.filter(decides) })) }
}

const writesFirst = (uses: readonly Use[]): readonly Use[] =>
  [...uses].sort((a, b) => (a.mode === b.mode ? 0 : a.mode === 'write' ? -1 : 1))

function usedOnlyIn(cx: Context, buffer: Buffer, loop: For): boolean {
  if (buffer.role !== 'local' || buffer.scope !== 'global') return false
  // The host reads counts after the run.
  if (capacityCounts(cx.kernel).includes(buffer.name)) return false
  const inside = accessesOf(loop.body).filter((a) => a.buffer === buffer.name).length
  const only = new Set([buffer.name])
  return accessesOf(cx.kernel.body, only).length === inside
}

function completeIn(cx: Context, at: LoopLocation, buffers: readonly Buffer[]): boolean {
  return [...at.path, at.loop].every(
    (l) =>
      !l.reduce ||
      writtenIn(cx.kernel, l).every((w) => w.disjoint || !buffers.some((b) => b.name === w.buffer)) ||
      buffers.every((b) => allocatedNames(l.body).has(b.name)),
  )
}

function localWriter(
  writer: Store | Reduce,
  locals: readonly Buffer[],
  index: readonly (readonly Expr[])[],
  init: boolean,
): Store | Reduce {
  if (writer.kind === 'store') return stmt({ ...writer, buffer: locals[0]!.name, index: index[0]! })
  const targets = locals.map((b, k) => load(b.name, index[k]!, b.dtype))
  return stmt({
    ...retarget(writer, targets),
    init,
    atomic: writer.atomic && locals[0]!.scope === 'shared',
  })
}

/** Returns statements that set the local buffers to the identity, even if no value is combined later. */
const identities = (
  cx: Context,
  writer: Reduce,
  locals: readonly Buffer[],
  prints: readonly Footprint[],
  scope: arg.CacheScope,
): readonly Stmt[] =>
  locals.map((b, k) =>
    copyNest(cx, prints[k]!, b.name, scope, (index) =>
      store(b.name, index, cast(writer.reducer.identity[k]!, b.dtype)),
    ),
  )

function copyBack(
  cx: Context,
  writer: Store | Reduce,
  buffers: readonly Buffer[],
  locals: readonly Buffer[],
  prints: readonly Footprint[],
  scope: arg.CacheScope,
  whole: boolean,
  conditions: readonly Condition[],
): readonly Stmt[] {
  const value = (k: number, index: readonly Expr[]): Expr => load(locals[k]!.name, index, locals[k]!.dtype)
  if (writer.kind === 'store' || whole) {
    return buffers.map((b, k) =>
      copyNest(cx, prints[k]!, locals[k]!.name, scope, (index, element) => {
        const more = locals[k]!.dtype === b.dtype ? {} : ({ combined: true } as const)
        return store(b.name, prints[k]!.index.map(element), cast(value(k, index), b.dtype), more)
      }),
    )
  }
  return [
    copyNest(cx, prints[0]!, locals[0]!.name, scope, (index, element) => {
      const combine: Stmt = stmt({
        ...writer,
        targets: buffers.map((b, k) => load(b.name, prints[k]!.index.map(element), b.dtype)),
        values: buffers.map((_, k) => value(k, index)),
      })
      return conditions.reduceRight<Stmt>(
        (then, { cond, absent }) => when(element(cond), [then], [], absent ? { absent } : {}),
        combine,
      )
    }),
  ]
}
