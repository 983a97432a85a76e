/**
 * Loop-carried dependence testing: data races of a parallel loop.
 * The analysis relies on the contract of Stage II, which Stage I checks. If `for.reduce` is false, a statement writes
 * different elements in different iterations, whatever the loops around and inside do; if it is true, a reducer
 * combines the values of common elements.
 */

import { type Shared, spaceIn, writtenIn } from '../../analysis/dependence/loop-writes.ts'
import type { Space } from '../../analysis/dependence/subscript-injectivity.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars, mentions } from '../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../ir/expressions/structural-equality.ts'
import type { BufferAccess } from '../../ir/statements/accesses.ts'
import type { For, Kernel2, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { isSingleIteration } from '../../ir/statements/reductions.ts'

/**
 * Returns whether the contract excludes conflicts between iterations. By the contract, the index of one statement alone
 * makes the statement's elements differ between iterations. The same follows for all accesses if they go to the same
 * element. It also follows if the accesses agree in the dimensions that mention the loop (several dimensions are digits
 * of a fused loop), and if all other dimensions have the same values in every iteration of the loop, and of the inner
 * loops in those dimensions (the halves of a split).
 */
function sameByContract(shared: Shared, loop: For, space: Space): boolean {
  const { accesses } = shared
  const v = loop.var
  const first = accesses[0]!
  if (loop.reduce || shared.moving || accesses.some((a) => a.whole)) return false
  if (first.index.some((e) => mentions(e, v)) && accesses.every((a) => isSameElement(first, a))) return true
  const own = new Set([...first.index.keys()].filter((d) => accesses.some((a) => mentions(a.index[d]!, v))))
  const varying = new Set([v])
  for (const d of own) {
    const e = first.index[d]!
    if (accesses.some((a) => keyOf(a.index[d]!) !== keyOf(e))) return false
    for (const x of freeVars(e)) if (space.inner.has(x)) varying.add(x)
  }
  const isApart = (e: Expr): boolean => [...varying].every((x) => !variesWith(e, x, space))
  return own.size > 0 && accesses.every((a) => a.index.every((e, d) => own.has(d) || isApart(e)))
}

/**
 * Returns whether both accesses have the same element in every iteration of the same loops, regardless of conditions.
 */
const isSameElement = (a: BufferAccess, b: BufferAccess): boolean =>
  a.path.length === b.path.length &&
  a.path.every((l, k) => l === b.path[k]) &&
  a.index.every((e, d) => sameExpr(e, b.index[d]!))

/** Returns whether the values of an expression depend on `v`, also through extents and guards of inner loops. */
function variesWith(e: Expr, v: string, space: Space, seen: Set<string> = new Set()): boolean {
  for (const x of freeVars(e)) {
    if (x === v) return true
    const loop = space.inner.get(x)
    if (!loop || seen.has(x)) continue
    seen.add(x)
    if ([loop.extent, ...loop.guards].some((y) => variesWith(y, v, space, seen))) return true
  }
  return false
}

/** Returns a key of the reduction if all accesses are writes by reductions of one kind, otherwise undefined. */
function reductionKind(accesses: readonly BufferAccess[]): string | undefined {
  let kind: string | undefined
  for (const a of accesses) {
    if (a.mode !== 'write' || a.stmt.kind !== 'reduce') return undefined
    const own = `${a.stmt.reducer.name}(${a.stmt.targets.map((t) => t.buffer).join(',')})`
    if (kind !== undefined && own !== kind) return undefined
    kind = own
  }
  return kind
}

const writersOf = (accesses: readonly BufferAccess[]): ReadonlySet<Stmt> =>
  new Set(accesses.flatMap((a) => (a.mode === 'write' ? [a.stmt] : [])))

/** A dependence between iterations: their order matters. */
export interface Dependence {
  readonly buffer: string
  readonly reason: string
}

export interface IterationFacts {
  /** The first dependence that fixes the order of iterations; undefined if there is no dependence. */
  readonly dependence?: Dependence
  /** Reductions that combine values of different iterations. */
  readonly combining: readonly Reduce[]
}

/** Returns whether the iterations of a loop may run in any order, and the reductions that combine them. */
export function iterationsOf(kernel: Kernel2, loop: For): IterationFacts {
  const space = spaceIn(kernel, loop)
  const combining: Reduce[] = []
  // A loop of one iteration has no dependence.
  if (!loop.reduce && isSingleIteration(loop)) return { combining }
  for (const shared of writtenIn(kernel, loop, space)) {
    const { buffer, accesses } = shared
    if (shared.disjoint) continue
    const tied = (reason: string): IterationFacts => ({ dependence: { buffer, reason }, combining })
    const reads = accesses.some((a) => a.mode === 'read')
    if (sameByContract(shared, loop, space)) continue
    if (reads) return tied(`iterations read what others write to ${buffer}`)
    if (!loop.reduce && writersOf(accesses).size === 1) continue
    if (reductionKind(accesses) === undefined)
      return tied(`iterations write the same elements of ${buffer} other than by one reducer`)
    const reductions = [...writersOf(accesses)] as Reduce[]
    if (!loop.reduce && reductions.some((r) => r.init))
      return tied(`every iteration starts elements of ${buffer} anew`)
    combining.push(...reductions)
  }
  return { combining }
}
