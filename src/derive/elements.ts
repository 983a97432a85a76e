/** Elements of tensors: whether they exist, and dense tensors for gradients at elements that may not. */
import { Facts } from '../analysis/integers/facts.ts'
import type { Write } from '../analysis/sparsity/writes.ts'
import {
  type Axis,
  isAttached,
  isDense,
  isDenseRoot,
  isFused,
  parentOf,
  type StoredAxis,
} from '../ir/coordinates/axis.ts'
import type { Buffer1 } from '../ir/coordinates/stage1.ts'
import { type Expr, ge, int, type Load, lt } from '../ir/expressions/expr.ts'

type Axes = ReadonlyMap<string, Axis>

/** The axes over which the iterators around a statement run, by the names of their coordinates. */
export function axesOfCoordinates({ iterations }: Write, axes: Axes): ReadonlyMap<string, Axis> {
  const out = new Map<string, Axis>()
  for (const { name, axis } of iterations.flatMap((it) => it.iters)) {
    const a = axes.get(axis)!
    if (isFused(a)) for (const m of a.members) out.set(m, axes.get(m)!)
    else out.set(name, a)
  }
  return out
}

/** The axis that stores the coordinates of an axis. */
export const storedAxis = (a: Axis | undefined, axes: Axes): Axis | undefined =>
  a && isAttached(a) ? axes.get(a.base) : a

/** True if iterators visit the element only where the tensor stores it, apart from the ranges of dense dimensions. */
export function isVisitedOnce(
  l: Load,
  of: Buffer1,
  coordinates: ReadonlyMap<string, Axis>,
  axes: Axes,
): boolean {
  return of.axes.every((name, d) => {
    if (isDenseRoot(axes.get(name)!)) return true
    const own = l.index[d]!
    const axis = own.kind === 'var' ? coordinates.get(own.name) : undefined
    if (storedAxis(axis, axes)?.name !== name) return false
    const above = parentOf(axis!)
    if (above === null) return true
    const index = l.index[of.axes.indexOf(parentOf(axes.get(name)!)!)]
    return index?.kind === 'var' && coordinates.get(index.name)?.name === above
  })
}

/** Conditions that the indices of dense dimensions are in range, without those that hold anyway. */
export function rangeConditions(
  l: Load,
  of: Buffer1,
  coordinates: ReadonlyMap<string, Axis>,
  conditions: readonly Expr[],
  axes: Axes,
): readonly Expr[] {
  const facts = new Facts({
    end: (e) => {
      const a = e.kind === 'var' ? storedAxis(coordinates.get(e.name), axes) : undefined
      return a && 'extent' in a ? a.extent : undefined
    },
  })
  for (const c of conditions) {
    facts.holds(c)
    if (c.kind === 'binary' && c.op === 'gt' && c.b.kind === 'const') facts.atLeast(c.a, c.b.value + 1)
  }
  const isImplied = (c: Expr): boolean =>
    facts.implies(c) ||
    (c.kind === 'binary' &&
      c.op === 'lt' &&
      c.a.kind === 'binary' &&
      c.a.op === 'sub' &&
      facts.nonNegative(c.a.b) &&
      isImplied(lt(c.a.a, c.b)))
  return l.index.flatMap((e, d) => {
    const axis = axes.get(of.axes[d]!)
    if (!isDense(axis)) return []
    return [ge(e, int(0)), lt(e, axis.extent)].filter((c) => !isImplied(c))
  })
}

/** The extent of a stored axis. */
export const extentOf = (a: Axis): Expr => (a as StoredAxis).extent
