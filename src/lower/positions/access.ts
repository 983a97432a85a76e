/**
 * Access `B[e1, …, en]`: from coordinates to positions (SparseTIR's compress, section 4.1, with an absent
 * coordinate made explicit). Where the index is the open iterator of the same axis, its position is known;
 * elsewhere a dense coordinate is its own position after a range check, and a sparse one is searched.
 */
import { invariant } from '../../ast/diagnostic.ts'
import { indicesOf, type StoredAxis } from '../../ir/axis.ts'
import { add, all, and, type Expr, eq, ge, int, load, lt, sameExpr, search, select } from '../../ir/expr.ts'
import type { Levels } from './levels.ts'
import type { Scope } from './scope.ts'

export interface Place {
  /** One position for each tree of the buffer. */
  readonly index: readonly Expr[]
  /** Conditions under which the element exists, each decidable if those before it hold; none: it surely does. */
  readonly present: readonly Expr[]
}

/** Finds the element of a buffer over `axes` at coordinates `coords` (already in positions' terms). */
export function locate(
  levels: Levels,
  scope: Scope,
  axes: readonly string[],
  coords: readonly Expr[],
): Place {
  invariant(axes.length === coords.length, 'one coordinate an axis')
  const present: Expr[] = []
  const offsets = new Map<string, Expr>()
  axes.forEach((name, k) => {
    const axis = levels.stored(name)
    const parent = axis.kind === 'dense_fixed' || axis.parent === null ? null : offsets.get(axis.parent)
    invariant(parent !== undefined, `axis ${name} comes before its parent`)
    offsets.set(name, step(levels, scope, axis, parent, coords[k]!, present))
  })
  const index = levels.trees(axes).map((tree) => offsets.get(tree[tree.length - 1]!)!)
  return { index, present }
}

/** One level down. Pushes the conditions under which the returned position is real. */
function step(
  levels: Levels,
  scope: Scope,
  axis: StoredAxis,
  parent: Expr | null,
  coord: Expr,
  present: Expr[],
): Expr {
  const opened = scope.open
    .get(axis.name)
    ?.findLast(
      (o) =>
        sameExpr(o.coordinate, coord) &&
        (o.parent === null ? parent === null : parent !== null && sameExpr(o.parent, parent)),
    )
  if (opened) return opened.offset
  if (axis.kind === 'dense_fixed') {
    present.push(...rangeChecks(scope, coord, axis.extent))
    return coord
  }
  // A segment of an absent parent is empty: neither its bounds nor its contents are read.
  const certain = all(present)
  const segment = levels.segment(axis, parent)
  const lo = select(certain, segment.base, int(0))
  const length = select(certain, segment.length, int(0))
  if (axis.kind === 'dense_variable') {
    present.push(...rangeChecks(scope, coord, length))
    return add(lo, coord)
  }
  const hi = add(lo, length)
  const found = search(axis.ordered ? 'lower' : 'linear', indicesOf(axis.name), lo, hi, coord)
  present.push(lt(found, hi))
  if (axis.ordered) present.push(eq(load(indicesOf(axis.name), [found], 'i32'), coord))
  // A padding position carries the extent as its coordinate and must not be found by asking for it.
  if (axis.kind === 'sparse_fixed' && !scope.facts.below(coord, axis.extent))
    present.push(lt(coord, axis.extent))
  return found
}

function rangeChecks(scope: Scope, e: Expr, extent: Expr): Expr[] {
  const checks: Expr[] = []
  if (!scope.facts.nonNegative(e)) checks.push(ge(e, int(0)))
  if (!scope.facts.below(e, extent)) checks.push(lt(e, extent))
  return checks
}

/** `value` where the element exists, `otherwise` elsewhere. */
export const whenPresent = (place: Place, value: Expr, otherwise: Expr): Expr =>
  select(place.present.reduce(and, all([])), value, otherwise)
