/** Second pass of a two-pass reduction: the loop nest that adds partial results to their elements, in a fixed order. */

import { conditionsAround } from '../../../analysis/dependence/loop-writes.ts'
import type { Expr, Load } from '../../../ir/expressions/expr.ts'
import { add, ceildiv, int, load, min, mul, search, sub, variable } from '../../../ir/expressions/expr.ts'
import { buffersRead, mentions, substitute } from '../../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../../ir/expressions/structural-equality.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import { offsetsIn } from '../../../ir/statements/accesses.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../../../ir/statements/loops.ts'
import { loopsUsedBy, retarget } from '../../../ir/statements/reductions.ts'
import { forLoop } from '../../../ir/statements/statement-builders.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { overParams } from '../../legality/checks.ts'
import { nestOf } from '../../legality/footprint.ts'
import { dependentAfterReorder } from '../../legality/loop-dependence.ts'
import type { Context } from '../../state/context.ts'

/** A reduction, the statement of the kernel's body that contains it, and the loops around it. */
export interface Update {
  readonly top: Stmt
  readonly reduce: Reduce
  readonly path: readonly For[]
}

/** A buffer of partial results: its name, if it is given, and the index of a target in it. */
interface PartialBuffer extends Pick<Buffer, 'shape' | 'fill'> {
  readonly name?: string | undefined
  readonly index: readonly Expr[]
}

/** Returns the buffers of partial results, and the reduction `own` into them. */
export function partialResults(cx: Context, reduce: Reduce, of: (t: Load, buffer: Buffer) => PartialBuffer) {
  const made = reduce.targets.map((t) => {
    const buffer = cx.buffer(t.buffer)
    const { name = cx.fresh(`${buffer.name}_partial`), shape, fill, index } = of(t, buffer)
    const dtype = buffer.accumulate
    const partial: Buffer = Object.freeze({ ...buffer, name, dtype, role: 'local', shape, fill })
    return { partial, target: load(name, index, dtype) }
  })
  const targets = made.map((m) => m.target)
  const own: Reduce = stmt({ ...retarget(reduce, targets), init: true, atomic: false })
  return { partials: made.map((m) => m.partial), own }
}

/**
 * Builds the loop nest that adds the partial results of `own`, an element for each iteration of `through`, to the
 * targets of a reduction. Throws `schedule/condition-inside`.
 */
export function partialResultsNest(
  cx: Context,
  { top, reduce, path }: Update,
  through: readonly For[],
  own: Reduce,
): Stmt {
  const remaining = loopsUsedBy(path, [
    ...reduce.targets.flatMap((t) => t.index),
    ...through.map((l) => variable(l.var)),
  ])
  const conditions = conditionsAround([top], reduce, remaining).map((c) => c.cond)
  checkRestated(cx, path, remaining, conditions)
  const list = ascendingList(cx.kernel, reduce, remaining)
  const loops = spatialFirst(remaining, reduce).map((l): For => ({ ...l, mode: { kind: 'serial' } }))
  return combineNest(cx, reduce, own, loops, conditions, list)
}

/**
 * Builds copies of `loops` that add the partial results of `own` to the targets of `reduce`, for elements that satisfy
 * the conditions.
 */
export function combineNest(
  cx: Context,
  reduce: Reduce,
  own: Reduce,
  loops: readonly For[],
  conditions: readonly Expr[],
  list?: AscendingList,
): Stmt {
  const nest = own.targets[0]!.buffer
  const names = loops.map((l) => cx.fresh(l.var))
  const map = new Map<string, Expr>(loops.map((l, k) => [l.var, variable(names[k]!)]))
  const row = list && variable(cx.fresh('row'))
  const clones = loops.map((l, k): For => {
    const isList = list?.loop.var === l.var && row
    const extent = isList ? sub(list.first(add(row, int(1))), list.first(row)) : substitute(l.extent, map)
    return { ...l, var: names[k]!, nest, guards: [], extent }
  })
  if (list && row) {
    map.set(list.loop.var, add(list.first(row), map.get(list.loop.var)!))
    clones.unshift(forLoop(row.name, list.extent, [], { name: 'row', nest }))
  }
  const at = ({ buffer, index, dtype }: Load, f: (e: Expr) => Expr): Load => load(buffer, index.map(f), dtype)
  const element = (e: Expr): Expr => (row && list && mentions(e, list.loop.var) ? row : substitute(e, map))
  const targets = reduce.targets.map((t) => at(t, element))
  const values = own.targets.map((t) => at(t, (e) => substitute(e, map)))
  const restated = conditions.map((c) => substitute(c, map))
  const home = (c: Expr): For | undefined => clones.findLast((l) => mentions(c, l.var)) ?? clones[0]
  const guarded = clones.map((l) => ({ ...l, guards: restated.filter((c) => home(c) === l) }))
  return nestOf(guarded, stmt<Reduce>({ ...reduce, targets, values }))
}

/** The loops over different elements come first, if they still run over such there and extents permit it. */
function spatialFirst(remaining: readonly For[], reduce: Reduce): readonly For[] {
  const spatial = remaining.filter((l) => !l.reduce)
  const reduced = dependentAfterReorder(
    remaining,
    [...spatial, ...remaining.filter((l) => l.reduce)],
    [reduce],
  )
  const first = spatial.filter((l) => !reduced.includes(l))
  const later = remaining.filter((l) => !first.includes(l))
  return first.some((l) => later.some((x) => mentions(l.extent, x.var))) ? remaining : [...first, ...later]
}

/** Throws `schedule/extent-not-known` unless the extent of a loop, a dimension of partial results, is over sizes. */
export function checkExtent(cx: Context, l: For, hint: string): void {
  if (overParams(cx, l.extent)) return
  cx.refuse('schedule/extent-not-known', [l], {
    message: `partial results need a dimension for ${l.name}, and the extent is ${printExpr(l.extent)}`,
    expected: 'an extent over sizes',
    hint,
  })
}

/** Throws `schedule/condition-inside` unless the remaining loops can evaluate the conditions of an update. */
function checkRestated(
  cx: Context,
  path: readonly For[],
  remaining: readonly For[],
  conditions: readonly Expr[],
): void {
  const hidden = path.filter((l) => !remaining.includes(l))
  const lost = conditions.find((c) => hidden.some((l) => mentions(c, l.var)))
  // Copies are valid only where they were made.
  const kept = new Set(
    cx.kernel.buffers.filter((b) => b.role === 'in' || b.role === 'index').map((b) => b.name),
  )
  const moving = conditions.find((c) => [...buffersRead(c)].some((b) => !kept.has(b)))
  const problem = lost ?? moving
  if (problem)
    cx.refuse(
      'schedule/condition-inside',
      hidden.filter((l) => mentions(problem, l.var)),
      {
        message: `whether elements are updated depends on ${printExpr(problem)}, which partial results do not store`,
        hint: 'use atomic',
      },
    )
}

/** A loop through ascending elements below `extent`; `first`: the first iteration at an element. */
interface AscendingList {
  readonly loop: For
  readonly first: (row: Expr) => Expr
  readonly extent: Expr
}

/** The only loop in which elements conflict, if the elements that it runs through ascend. */
function ascendingList(
  kernel: Kernel2,
  reduce: Reduce,
  remaining: readonly For[],
): AscendingList | undefined {
  const [loop, other] = remaining.filter((l) => l.reduce)
  if (!loop || other || remaining.some((l) => l !== loop && mentions(l.extent, loop.var))) return undefined
  const places = reduce.targets.flatMap((t) =>
    t.index.flatMap((e, d) => (mentions(e, loop.var) ? [{ e, buffer: t.buffer, d }] : [])),
  )
  const [place] = places
  if (!place || places.length !== reduce.targets.length) return undefined
  if (places.some((p) => !sameExpr(p.e, place.e))) return undefined
  const extent = kernel.buffers.find((b) => b.name === place.buffer)?.shape[place.d]
  const first = extent && firstWith(place.e, loop, kernel, extent)
  return first && { loop, first, extent }
}

// Inverse images of monotone index arrays: the first iteration in which a monotone index expression reaches a
// value. Such an iteration turns "all positions of row r" into a range.

/**
 * Returns a function from `bound` to the first iteration of `loop` with `e >= bound`, or to the extent if there is no
 * such iteration; undefined unless `e` is evidently monotone in the loop's variable. Recognised are ascending index
 * arrays, quotients by invariants, and the segment of a position (`search_upper(indptr, 0, n + 1, …) - 1`), also
 * nested. `e` must not be negative, and `bound` must not exceed `most`.
 */
function firstWith(e: Expr, loop: For, kernel: Kernel2, most: Expr): ((bound: Expr) => Expr) | undefined {
  const first = valueWith(e, loop, kernel, most)
  return (
    first &&
    ((bound) => {
      const at = first(bound)
      return isWithin(at, loop.extent, kernel) ? at : min(at, loop.extent)
    })
  )
}

/** Returns whether `at` is the result of a search, or an offset, in exactly the range of the loop. */
function isWithin(at: Expr, extent: Expr, kernel: Kernel2): boolean {
  if (at.kind === 'search') return sameExpr(at.hi, extent)
  const positions = at.kind === 'load' && kernel.buffers.find((b) => b.name === at.buffer)?.positions
  return positions ? sameExpr(positions, extent) : false
}

/** Like `firstWith`, but the result may exceed the extent. */
function valueWith(e: Expr, loop: For, kernel: Kernel2, most?: Expr): ((bound: Expr) => Expr) | undefined {
  const v = loop.var
  if (e.kind === 'var') return e.name === v ? (bound) => bound : undefined
  if (e.kind === 'load') {
    const index = e.index[0]
    const length = kernel.buffers.find((b) => b.name === e.buffer)?.shape[0]
    if (e.index.length !== 1 || !index || !length || !kernel.ascending?.includes(e.buffer)) return undefined
    const inner = valueWith(index, loop, kernel)
    return inner && ((bound) => inner(search('lower', e.buffer, int(0), length, bound)))
  }
  if (e.kind !== 'binary') return undefined
  if (e.op === 'div' && !mentions(e.b, v)) {
    const inner = valueWith(e.a, loop, kernel)
    // The bound is limited to the last quotient: its product with the divisor could overflow i32.
    const end = endOf(e.a, loop, kernel)
    return inner && ((bound) => inner(mul(end ? min(bound, ceildiv(end, e.b)) : bound, e.b)))
  }
  const { a } = e
  if (e.op !== 'sub' || keyOf(e.b) !== keyOf(int(1)) || a.kind !== 'search') return undefined
  const whole =
    keyOf(a.lo) === keyOf(int(0)) && a.method === 'upper' && offsetsIn(kernel.buffers).has(a.buffer)
  if (!whole || mentions(a.hi, v)) return undefined
  const inner = valueWith(a.value, loop, kernel)
  // There are no offsets beyond the last segment.
  const last = sub(a.hi, int(1))
  const within = most !== undefined && sameExpr(most, last)
  return inner && ((bound) => inner(load(a.buffer, [within ? bound : min(bound, last)])))
}

/** Returns an exclusive upper bound of all values of `e`; undefined if it is unknown. */
function endOf(e: Expr, loop: For, kernel: Kernel2): Expr | undefined {
  if (e.kind === 'var') return loop.extent
  if (e.kind === 'load') return kernel.buffers.find((b) => b.name === e.buffer)?.below
  if (e.kind !== 'binary') return undefined
  if (e.op === 'sub' && e.a.kind === 'search') return sub(e.a.hi, int(1))
  if (e.op !== 'div') return undefined
  const end = endOf(e.a, loop, kernel)
  return end && ceildiv(end, e.b)
}
