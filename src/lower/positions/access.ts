/**
 * Access `B[e1, …, en]`: translation from coordinates to positions (SparseTIR's compress, section 4.1, with explicit absence). If an index
 * is the open iterator of its axis, the position is known. Otherwise a dense coordinate is its own position after a range check, and a
 * sparse coordinate is searched.
 */
import { fail, invariant } from '../../ast/diagnostics/diagnostic.ts'
import {
  hasIndices,
  hasMask,
  hasWidth,
  indicesOf,
  isDense,
  isPadded,
  repeatsCoordinates,
  type StoredAxis,
} from '../../ir/coordinates/axis.ts'
import {
  add,
  all,
  and,
  type Expr,
  eq,
  ge,
  int,
  load,
  lt,
  max,
  search,
  select,
} from '../../ir/expressions/expr.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { isSet, rankOf, wordsOf } from './bitmap.ts'
import type { Levels } from './level-positions.ts'
import type { OpenAxis, Scope } from './nest-scope.ts'

export interface ElementPosition {
  /** Index of the element in storage: one position per tree of the buffer. */
  readonly index: readonly Expr[]
  /** Conditions under which the element exists, each evaluated only if the earlier ones hold. Empty if it always exists. */
  readonly present: readonly Expr[]
}

/**
 * Returns the position of a buffer's element. `axes`: the buffer's axes; `coords`: one coordinate per axis, over positions. Throws
 * SptError `lower/unordered-lookup` if the element may have several positions.
 */
export function locate(
  levels: Levels,
  scope: Scope,
  axes: readonly string[],
  coords: readonly Expr[],
): ElementPosition {
  invariant(axes.length === coords.length, 'one coordinate an axis')
  const present: Expr[] = []
  const offsets = new Map<string, Found>()
  const loose = looseAxes(levels, scope, axes, coords)
  axes.forEach((name, k) => {
    const axis = levels.stored(name)
    const parent = axis.parent === null ? null : offsets.get(axis.parent)
    invariant(parent !== undefined, `axis ${name} comes before its parent`)
    // If a coordinate has several positions, each may contain the element. Only axes with indices can be searched in all of them.
    if (parent?.apart || (parent?.end && !hasIndices(axis))) rejectAmbiguousAccess(axis)
    offsets.set(name, step(levels, scope, axis, parent, coords[k]!, present, loose.has(name)))
  })
  const index = levels.trees(axes).map((tree) => offsets.get(tree[tree.length - 1]!)!.at)
  return { index, present }
}

/**
 * Returns the axes whose position must be searched although an iterator is open: those from the first nonunique axis on, unless every
 * index of the tree is the open iterator of its axis. Other entries with the same coordinates may contain the element.
 */
function looseAxes(
  levels: Levels,
  scope: Scope,
  axes: readonly string[],
  coords: readonly Expr[],
): ReadonlySet<string> {
  const out = new Set<string>()
  for (const tree of levels.trees(axes)) {
    const stored = tree.map((name) => levels.stored(name))
    const first = stored.findIndex(repeatsCoordinates)
    if (first < 0) continue
    let parent: Expr | null = null
    let stands = true
    for (const axis of stored) {
      const open: OpenAxis | undefined = openedAt(scope, axis, parent, coords[axes.indexOf(axis.name)]!)
      if (!open) stands = false
      parent = open?.offset ?? null
    }
    if (stands) continue
    for (const axis of stored.slice(first)) out.add(axis.name)
    for (const axis of stored.slice(0, -1)) checkTogether(axis)
  }
  return out
}

/** Throws `lower/unordered-lookup` unless entries with equal coordinates are adjacent, which the search of their children requires. */
function checkTogether(axis: StoredAxis): void {
  if (!repeatsCoordinates(axis) || ('ordered' in axis && axis.ordered && !isPadded(axis))) return
  fail({
    code: 'lower/unordered-lookup',
    message: `axis ${axis.name} is nonunique and unordered, so the entries of a coordinate are not contiguous, and elements below cannot be looked up`,
    ...(axis.span ? { span: axis.span } : {}),
    expected: `accesses at the iterators of ${axis.name} and of the child axes`,
    hint: `iterate ${axis.name}, or declare ${axis.name} ordered`,
  })
}

function rejectAmbiguousAccess(axis: StoredAxis): never {
  fail({
    code: 'lower/unordered-lookup',
    message: `axis ${axis.name} is below several entries of a coordinate, whose elements cannot be looked up`,
    ...(axis.span ? { span: axis.span } : {}),
    expected: `accesses at the iterators of ${axis.name} and of the parent axes`,
    hint: `iterate ${axis.name} and the parent axes`,
  })
}

/** Returns the open iterator over `axis` at this coordinate and parent position; undefined if there is none. */
const openedAt = (scope: Scope, axis: StoredAxis, parent: Expr | null, coord: Expr): OpenAxis | undefined =>
  scope.open
    .get(axis.name)
    ?.findLast(
      (o) =>
        sameExpr(o.coordinate, coord) &&
        (o.parent === null ? parent === null : parent !== null && sameExpr(o.parent, parent)),
    )

/** A position. `end`: end of the range of positions with the same coordinate on a nonunique axis; null for a single position. */
interface Found {
  readonly at: Expr
  readonly end: Expr | null
  /**
   * True if the position was searched under the first of several parent positions. The other parents may have the same coordinate and
   * other children.
   */
  readonly apart?: boolean
}

/** Translates the coordinate of one axis. Appends the conditions under which the position exists to `present`. */
function step(
  levels: Levels,
  scope: Scope,
  axis: StoredAxis,
  above: Found | null,
  coord: Expr,
  present: Expr[],
  loose: boolean,
): Found {
  const parent = above?.at ?? null
  const opened = loose ? undefined : openedAt(scope, axis, parent, coord)
  if (opened) return { at: opened.offset, end: null }
  if (isDense(axis)) {
    present.push(...rangeChecks(scope, coord, axis.extent))
    return { at: add(levels.segment(axis, parent).base, coord), end: null }
  }
  if (hasMask(axis)) {
    invariant(parent, `axis ${axis.name} is looked up under its parent`)
    // Nonnegative after the range checks; `max` keeps flooring out of the index of the word, because LLVM of CUDA 13.0 does not
    // terminate on it in loops.
    const at = wordsOf(axis) === 1 || scope.facts.nonNegative(coord) ? coord : max(coord, int(0))
    present.push(...rangeChecks(scope, coord, axis.extent), isSet(axis, parent, at))
    return { at: add(levels.segment(axis, parent).base, rankOf(axis, parent, at)), end: null }
  }
  // The segment of an absent parent is empty, so its bounds are not loaded.
  const certain = all(present)
  const segment = levels.segment(axis, parent, above?.end ?? null)
  const lo = select(certain, segment.base, int(0))
  const length = select(certain, segment.length, int(0))
  if (!hasIndices(axis)) {
    present.push(...rangeChecks(scope, coord, length))
    return { at: add(lo, coord), end: null }
  }
  const hi = add(lo, length)
  // The concatenated segments of several parents are not sorted as a whole.
  const ordered = axis.ordered && !isPadded(axis) && !above?.end
  const find = (method: 'lower' | 'upper' | 'linear'): Expr =>
    search(method, indicesOf(axis.name), lo, hi, coord)
  const found = find(ordered ? 'lower' : 'linear')
  present.push(lt(found, hi))
  if (ordered) present.push(eq(load(indicesOf(axis.name), [found], 'i32'), coord))
  // Padding has the extent as its coordinate, and must not match a search.
  if (hasWidth(axis) && !scope.facts.below(coord, axis.extent)) present.push(lt(coord, axis.extent))
  return { at: found, end: ordered && !axis.unique ? find('upper') : null, apart: above?.end != null }
}

/**
 * Returns the segment of a child axis at a coordinate of its root axis; the segment is empty if the coordinate is absent (`certain` is
 * false).
 */
export function segmentAt(
  levels: Levels,
  scope: Scope,
  axis: StoredAxis,
  root: StoredAxis,
  coord: Expr,
): { readonly parent: Expr; readonly certain: Expr; readonly base: Expr; readonly length: Expr } {
  checkTogether(root)
  const present: Expr[] = []
  const found = step(levels, scope, root, null, coord, present, repeatsCoordinates(root))
  if (found.end && !hasIndices(axis)) rejectAmbiguousAccess(axis)
  const certain = all(present)
  const { base, length } = levels.segment(axis, found.at, found.end)
  return {
    parent: found.at,
    certain,
    base: select(certain, base, int(0)),
    length: select(certain, length, int(0)),
  }
}

function rangeChecks(scope: Scope, e: Expr, extent: Expr): Expr[] {
  const checks: Expr[] = []
  if (!scope.facts.nonNegative(e)) checks.push(ge(e, int(0)))
  if (!scope.facts.below(e, extent)) checks.push(lt(e, extent))
  return checks
}

/** Returns `value` if the element exists, and `otherwise` if not. */
export const whenPresent = (place: ElementPosition, value: Expr, otherwise: Expr): Expr =>
  select(place.present.reduce(and, all([])), value, otherwise)
