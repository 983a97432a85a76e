/**
 * Access `B[e1, …, en]`: from coordinates to positions (SparseTIR's compress, section 4.1, with an absent
 * coordinate made explicit). Where the index is the open iterator of the same axis, its position is known;
 * elsewhere a dense coordinate is its own position after a range check, and a sparse one is searched.
 */
import { fail, invariant } from '../../ast/diagnostic.ts'
import {
  hasIndices,
  hasMask,
  hasWidth,
  indicesOf,
  isDense,
  isPadded,
  repeatsCoordinates,
  type StoredAxis,
} from '../../ir/axis.ts'
import { add, all, and, type Expr, eq, ge, int, load, lt, max, search, select } from '../../ir/expr.ts'
import { sameExpr } from '../../ir/structural-equality.ts'
import { isSet, rankOf, wordsOf } from './bitmap.ts'
import type { Levels } from './level-positions.ts'
import type { OpenAxis, Scope } from './nest-scope.ts'

export interface ElementPosition {
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
): ElementPosition {
  invariant(axes.length === coords.length, 'one coordinate an axis')
  const present: Expr[] = []
  const offsets = new Map<string, Found>()
  const loose = looseAxes(levels, scope, axes, coords)
  axes.forEach((name, k) => {
    const axis = levels.stored(name)
    const parent = axis.parent === null ? null : offsets.get(axis.parent)
    invariant(parent !== undefined, `axis ${name} comes before its parent`)
    // Of several positions of one coordinate each may hold what is asked for: only indices are searched in all of them.
    if (parent?.apart || (parent?.end && !hasIndices(axis))) refuseSeveral(axis)
    offsets.set(name, step(levels, scope, axis, parent, coords[k]!, present, loose.has(name)))
  })
  const index = levels.trees(axes).map((tree) => offsets.get(tree[tree.length - 1]!)!.at)
  return { index, present }
}

/**
 * Axes whose open iterators do not decide where the element is: from the first nonunique axis on, unless every
 * index down the tree is the open iterator of its axis. Other entries of the same coordinates may hold it.
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

/** Entries of one coordinate have to lie together for what is under them to be found by that coordinate. */
function checkTogether(axis: StoredAxis): void {
  if (!repeatsCoordinates(axis) || ('ordered' in axis && axis.ordered && !isPadded(axis))) return
  fail({
    code: 'lower/unordered-lookup',
    message: `axis ${axis.name} is nonunique and unordered, so entries of one coordinate lie apart, and what is under them cannot be looked up`,
    ...(axis.span ? { span: axis.span } : {}),
    expected: `accesses at the iterators of ${axis.name} and of the axes under it`,
    hint: `iterate ${axis.name}, or declare it ordered`,
  })
}

function refuseSeveral(axis: StoredAxis): never {
  fail({
    code: 'lower/unordered-lookup',
    message: `axis ${axis.name} lies under several entries of one coordinate, and what they hold cannot be looked up`,
    ...(axis.span ? { span: axis.span } : {}),
    expected: `accesses at the iterators of ${axis.name} and of the axes above it`,
    hint: `iterate ${axis.name} and the axes above it`,
  })
}

/** The iterator over the axis that stands at this coordinate under this parent position. */
const openedAt = (scope: Scope, axis: StoredAxis, parent: Expr | null, coord: Expr): OpenAxis | undefined =>
  scope.open
    .get(axis.name)
    ?.findLast(
      (o) =>
        sameExpr(o.coordinate, coord) &&
        (o.parent === null ? parent === null : parent !== null && sameExpr(o.parent, parent)),
    )

/** A position; with `end` where several positions from `at` on have the same coordinate (a nonunique axis). */
interface Found {
  readonly at: Expr
  readonly end: Expr | null
  /** Searched under several positions: what lies elsewhere may have the same coordinate and hold other children. */
  readonly apart?: boolean
}

/** One level down. Pushes the conditions under which the returned position is real. */
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
    // Behind the range checks it is not negative; saying so keeps rounding out of the word's number, which LLVM of
    // CUDA 13.0 does not get done with in loops.
    const at = wordsOf(axis) === 1 || scope.facts.nonNegative(coord) ? coord : max(coord, int(0))
    present.push(...rangeChecks(scope, coord, axis.extent), isSet(axis, parent, at))
    return { at: add(levels.segment(axis, parent).base, rankOf(axis, parent, at)), end: null }
  }
  // A segment of an absent parent is empty: neither its bounds nor its contents are read.
  const certain = all(present)
  const segment = levels.segment(axis, parent, above?.end ?? null)
  const lo = select(certain, segment.base, int(0))
  const length = select(certain, segment.length, int(0))
  if (!hasIndices(axis)) {
    present.push(...rangeChecks(scope, coord, length))
    return { at: add(lo, coord), end: null }
  }
  const hi = add(lo, length)
  // The segments of several parents follow each other, each ordered by itself only.
  const ordered = axis.ordered && !isPadded(axis) && !above?.end
  const find = (method: 'lower' | 'upper' | 'linear'): Expr =>
    search(method, indicesOf(axis.name), lo, hi, coord)
  const found = find(ordered ? 'lower' : 'linear')
  present.push(lt(found, hi))
  if (ordered) present.push(eq(load(indicesOf(axis.name), [found], 'i32'), coord))
  // A padding position carries the extent as its coordinate and must not be found by asking for it.
  if (hasWidth(axis) && !scope.facts.below(coord, axis.extent)) present.push(lt(coord, axis.extent))
  return { at: found, end: ordered && !axis.unique ? find('upper') : null, apart: above?.end != null }
}

/** The segment of a child of a root at a coordinate of that root; an absent (not `certain`) coordinate has an empty one. */
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
  if (found.end && !hasIndices(axis)) refuseSeveral(axis)
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

/** `value` where the element exists, `otherwise` elsewhere. */
export const whenPresent = (place: ElementPosition, value: Expr, otherwise: Expr): Expr =>
  select(place.present.reduce(and, all([])), value, otherwise)
