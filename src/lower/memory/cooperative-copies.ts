/**
 * Cooperative copies by the threads of a block. Invariant reached: a loop nest that only fills shared memory, or only copies shared memory
 * to global memory, is executed once by all T threads of the block together. Each thread takes every T-th element.
 */

import { isWarpCollective, lanesIn, threadsIn } from '../../analysis/instructions/lane-groups.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import type { Expr, ThreadAxis } from '../../ir/expressions/expr.ts'
import { add, builtin, div, eq, int, lt, mod, mul, THREAD_AXES, variable } from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import { mapSame } from '../../ir/lists.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames, substituteStmts } from '../../ir/statements/bindings.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, Stmt, Store } from '../../ir/statements/loops.ts'
import { forLoop, whenAll } from '../../ir/statements/statement-builders.ts'
import { type Body, mapBodies, someStmt, withBody } from '../../ir/statements/tree.ts'
import { type Axes, varyingIn } from '../divergence/divergence-analysis.ts'
import { vectorToUnroll } from '../loops/loop-unrolling.ts'

export function makeCopiesCooperative(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const body = mapSame(kernel.body, (top) => distributeIn(top, names))
  return withBody(kernel, body)
}

function distributeIn(top: Stmt, names: Names): Stmt {
  const local = allocatedNames([top])
  const shared = allocatedNames([top], 'shared')
  const threads = threadsIn([top])
  const lanes = lanesIn([top])
  if (shared.size === 0 || threads.size === 0) return top
  const varying = varyingIn([top], threads)
  const visit = (s: Stmt, around: Axes): Stmt => {
    if ((fillsShared(s, shared) || copiesOut(s, shared, local)) && !isWarpCollective(s, lanes)) {
      // Every thread of an axis on which the statement depends runs it. The threads of the other axes divide the work.
      const dependentAxes = varying.ofStmt(s)
      const free = new Map([...threads].filter(([axis]) => !dependentAxes.has(axis) && !around.has(axis)))
      if (free.size > 0) {
        // If only the stored values differ along an axis (partial sums in registers), the first thread of the axis stores.
        const places = varying.ofPlaces(s)
        const several = [...threads.keys()].filter(
          (a) => dependentAxes.has(a) && !places.has(a) && !around.has(a),
        )
        return distributeOverThreads(s, free, several, names)
      }
    }
    if (s.kind === 'for' && s.mode.kind === 'instr') return s
    const control = varying.ofControl(s)
    const inner = control.size === 0 ? around : new Set([...around, ...control])
    const next = mapBodies(s, (b) => mapSame(b, (x) => visit(x, inner)))
    // Iterations that contain barriers run one after the other.
    return next.kind === 'for' && next.mode.kind === 'vectorize' && sharesWork(next.body)
      ? vectorToUnroll(next)
      : next
  }
  return visit(top, new Set())
}

/** Returns true if the body allocates shared memory or contains a cooperative loop, and will therefore contain barriers. */
export const sharesWork = (body: Body): boolean =>
  someStmt(body, (s) =>
    s.kind === 'alloc' ? s.buffer.scope === 'shared' : s.kind === 'for' && s.cooperative === true,
  )

/** Returns true if the loop contains bound loops, shared memory or cooperative loops. */
export const isShared = (loop: For): boolean =>
  sharesWork([loop]) || loopsOf([loop]).some((l) => l.mode.kind === 'bind')

/**
 * Returns true for a loop or store that only writes shared memory declared outside of it, and that no thread axis is bound in. Shared
 * memory declared inside is one tile for all iterations, so its iterations run one after the other.
 */
function fillsShared(s: Stmt, shared: ReadonlySet<string>): s is For | Store {
  if (s.kind !== 'for' && s.kind !== 'store') return false
  const bindsOrAllocates = (x: Stmt): boolean =>
    x.kind === 'for' ? x.mode.kind === 'bind' : x.kind === 'alloc' && x.buffer.scope === 'shared'
  if (someStmt([s], bindsOrAllocates)) return false
  const written = accessesOf([s]).filter((a) => a.mode === 'write')
  return written.length > 0 && written.every((a) => shared.has(a.buffer) && a.stmt.kind === 'store')
}

/**
 * Returns true for spatial loops that copy shared memory to global memory, by stores or by instructions of one thread. No two iterations
 * store to the same element.
 */
function copiesOut(s: Stmt, shared: ReadonlySet<string>, local: ReadonlySet<string>): s is For {
  if (s.kind !== 'for') return false
  const preventsCopy = (x: Stmt): boolean =>
    x.kind === 'for'
      ? x.reduce || x.mode.kind === 'bind' || (x.mode.kind === 'instr' && x.mode.instr.threads > 1)
      : x.kind !== 'store' || local.has(x.buffer)
  return (
    !someStmt([s], preventsCopy) && accessesOf([s]).some((a) => a.mode === 'read' && shared.has(a.buffer))
  )
}

/**
 * Collapses the constant serial loops at the top of the nest, and distributes the collapsed index over the threads. Without such loops one
 * thread runs the statement. Unrolled and vectorised loops stay within each thread.
 */
function distributeOverThreads(
  s: For | Store,
  threads: ReadonlyMap<ThreadAxis, number>,
  firstOf: readonly ThreadAxis[],
  names: Names,
): Stmt {
  const chain: For[] = []
  let body: Body = [s]
  for (;;) {
    const only = body.length === 1 ? body[0] : undefined
    if (only?.kind !== 'for' || only.extent.kind !== 'const' || only.mode.kind !== 'serial') break
    chain.push(only)
    body = only.body
  }
  const extents = chain.map((l) => (l.extent.kind === 'const' ? l.extent.value : 1))
  const total = extents.reduce((a, b) => a * b, 1)
  const digits: Digit[] = []
  let count = 1
  for (const axis of THREAD_AXES) {
    const extent = threads.get(axis)
    if (extent === undefined) continue
    digits.push({ value: builtin(axis), place: count, end: count * extent })
    count *= extent
  }
  const round = names.fresh('round')
  digits.push({ value: variable(round), place: count, end: Number.POSITIVE_INFINITY })
  const at = digits.map((d) => mul(d.value, int(d.place))).reduce((a, b) => add(b, a))
  const indices = indicesOf(extents, digits, at)
  const map = new Map<string, Expr>(chain.map((l, k) => [l.var, indices[k]!]))
  const conditions = [
    ...firstOf.map((axis) => eq(builtin(axis), int(0))),
    ...(total % count === 0 ? [] : [lt(at, int(total))]),
    ...chain.flatMap((l) => l.guards.map((g) => substitute(g, map))),
  ]
  const inner = substituteStmts(body, map)
  return forLoop(round, int(Math.ceil(total / count)), whenAll(conditions, inner), {
    name: 'round',
    nest: chain[0]?.nest ?? 'copy',
    cooperative: true,
    along: [...threads.keys()],
    span: s.span,
  })
}

/** A digit of a mixed-radix number: `value · place`, less than `end`. */
interface Digit {
  readonly value: Expr
  readonly place: number
  readonly end: number
}

/**
 * Returns the indices of nested loops with constant extents from their collapsed index `at`, the sum of `digits`. If the place values of
 * loops and digits divide each other, each index is composed of digits without division, so the part that depends on the thread is
 * computed once.
 */
function indicesOf(extents: readonly number[], digits: readonly Digit[], at: Expr): readonly Expr[] {
  const places = extents.map((_, k) => extents.slice(k + 1).reduce((a, b) => a * b, 1))
  const all = [...places, ...digits.map((d) => d.place)].sort((a, b) => a - b)
  const chained = all.every((p, k) => k === 0 || p % all[k - 1]! === 0)
  return places.map((place, k) => {
    if (extents[k] === 1) return int(0)
    const end = k === 0 ? Number.POSITIVE_INFINITY : place * extents[k]!
    if (!chained) return k === 0 ? div(at, int(place)) : mod(div(at, int(place)), int(extents[k]!))
    return digits
      .map((d) => {
        const [low, high] = [Math.max(place, d.place), Math.min(end, d.end)]
        if (low >= high) return int(0)
        const part = div(d.value, int(low / d.place))
        return mul(high === d.end ? part : mod(part, int(high / low)), int(low / place))
      })
      .reduce((a, b) => add(b, a))
  })
}
