/** Reductions in a body, and the loops between them and their targets. */

import { cast, type Expr, int, type Load } from '../expressions/expr.ts'
import { freeVars, mentions, mentionsSome, readsSome, substitute } from '../expressions/expr-tree.ts'
import { boundIndex } from '../instructions/hardware-axes.ts'
import { memoize } from '../memoize.ts'
import { initialValue, widen } from '../values/monoid.ts'
import { writesOf } from './accesses.ts'
import type { For, Reduce, Stmt } from './loops.ts'
import { store } from './statement-builders.ts'
import { type Body, bodiesOf, stmt } from './tree.ts'

/** A reduction, and the loops around it that are inside the innermost allocation of its targets. */
export interface ReductionPath {
  readonly reduce: Reduce
  readonly path: readonly For[]
}

/** All reductions inside; for targets in global buffers the path begins at the top. */
export const reductionsOf = (body: Body): readonly ReductionPath[] =>
  body.some((s) => s.kind === 'alloc') ? findReductions(body) : body.flatMap(reductionsInside)

function findReductions(body: Body): readonly ReductionPath[] {
  const out: ReductionPath[] = []
  const visit = (list: Body, path: readonly For[], scope: ReadonlyMap<string, number>): void => {
    let allocs = scope
    for (const s of list) {
      if (s.kind === 'alloc') allocs = new Map(allocs).set(s.buffer.name, path.length)
      if (s.kind === 'reduce')
        out.push({
          reduce: s,
          path: path.slice(Math.max(...s.targets.map((t) => allocs.get(t.buffer) ?? 0))),
        })
      for (const b of bodiesOf(s)) visit(b, s.kind === 'for' ? [...path, s] : path, allocs)
    }
  }
  visit(body, [], new Map())
  return out
}

const reductionsInside = memoize((s: Stmt): readonly ReductionPath[] => findReductions([s]))

/**
 * True if iterations combine into the same elements. A copy that is filled within a reduction has reduction
 * loops, but contains no reduction.
 */
export const hasReduction = (loop: For): boolean => loop.reduce && reductionsOf([loop]).length > 0

/**
 * Reductions that carry their initialisation, which belongs before the outermost reduction loop of the path, or before
 * the statement if there is none.
 */
export const initsOf = (body: Body): readonly ReductionPath[] =>
  reductionsOf(body).filter((r) => r.reduce.init)

/**
 * The loops that an initialisation repeats: loops of `innerLoops` (the path from the outermost reduction loop inwards) that
 * are not reductions and that the targets depend on, directly or through the extents of such loops. Each keeps the
 * guards that mention only these loops and enclosing ones.
 */
export function initLoops(reduce: Reduce, innerLoops: readonly For[]): readonly For[] {
  const spatialLoops = loopsUsedBy(
    innerLoops.filter((l) => !l.reduce),
    reduce.targets.flatMap((t) => t.index),
  )
  const innerVars = new Set(innerLoops.map((l) => l.var))
  for (const l of spatialLoops) innerVars.delete(l.var)
  return spatialLoops.map((l) => ({
    ...l,
    guards: l.guards.filter((g) => !mentionsSome(g, innerVars)),
  }))
}

/**
 * True if the element that a reduction updates changes with a loop: by its variable, or by values that the loop writes.
 */
export function elementChanges(reduce: Reduce, loop: For): boolean {
  const buffersWritten = writesOf(loop.body)
  return reduce.targets.some((t) =>
    t.index.some((e) => mentions(e, loop.var) || readsSome(e, buffersWritten)),
  )
}

/** True if the updated element changes with a reduction loop, so that no thread can update it on behalf of others. */
export const scattersElements = (reduce: Reduce, path: readonly For[]): boolean =>
  path.some((l) => l.reduce && !boundIndex(l, 'block') && elementChanges(reduce, l))

/** The loops whose variables `exprs` mention, and those that the extents of such loops mention; in path order. */
export function loopsUsedBy(path: readonly For[], exprs: readonly Expr[]): readonly For[] {
  const names = new Set<string>()
  for (const e of exprs) for (const v of freeVars(e)) names.add(v)
  for (let k = path.length - 1; k >= 0; k--)
    if (names.has(path[k]!.var)) for (const v of freeVars(path[k]!.extent)) names.add(v)
  return path.filter((l) => names.has(l.var))
}

/** True for a loop of one iteration: its variable is always 0, so indices may omit it. */
export const isSingleIteration = ({ extent }: Pick<For, 'extent'>): boolean =>
  extent.kind === 'const' && extent.value === 1

/**
 * The expression with every one-iteration loop set to 0, so that expressions compare equal whether or not they name it.
 */
export const dropSingleIterations = (e: Expr, loops: readonly For[]): Expr =>
  substitute(e, new Map(loops.filter(isSingleIteration).map((l) => [l.var, int(0)])))

/** Combines values into elements that hold partial results, or the identity: one step of a reduction in several levels. */
export const combineInto = (
  reduce: Reduce,
  targets: readonly Load[],
  values: readonly Expr[],
  lanes?: Reduce['lanes'],
): Reduce => stmt({ ...reduce, init: false, atomic: false, targets, values, ...(lanes && { lanes }) })

/** Stores the identity of a reduction to elements that take its values. */
export const storeIdentity = ({ reducer, span }: Reduce, targets: readonly Load[]): Stmt[] =>
  targets.map((t, k) => store(t.buffer, t.index, initialValue(reducer.identity[k]!, t.dtype), { span }))

/** The reduction into other targets, combining in their types. */
export function retarget(reduce: Reduce, targets: Reduce['targets']): Reduce {
  if (targets.every((t, k) => t.dtype === reduce.targets[k]!.dtype)) return stmt({ ...reduce, targets })
  return stmt({
    ...reduce,
    targets,
    reducer: widen(
      reduce.reducer,
      targets.map((t) => t.dtype),
    ),
    values: reduce.values.map((v, k) => cast(v, targets[k]!.dtype)),
  })
}
