/**
 * Access `B[e1, …, en]`: translation from coordinates to positions (SparseTIR's compress, section 4.1, with explicit absence). If an index
 * is the open iterator of its axis, the position is known. Otherwise a dense coordinate is its own position after a range check, and a
 * sparse coordinate is searched.
 */
import { failAt, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { isPadded, repeatsCoordinates, type StoredAxis } from '../../ir/coordinates/axis.ts'
import { all, and, type Expr, select } from '../../ir/expressions/expr.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { formatOf } from '../../levels/index.ts'
import { segmentIf } from '../../levels/segments.ts'
import type { Position, Segment } from '../../levels/types.ts'
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
  const offsets = new Map<string, Position>()
  const loose = looseAxes(levels, scope, axes, coords)
  axes.forEach((name, k) => {
    const axis = levels.stored(name)
    const parent = axis.parent === null ? null : offsets.get(axis.parent)
    invariant(parent !== undefined, `axis ${name} comes before its parent`)
    // If a coordinate has several positions, each may contain the element.
    if (parent?.apart || (parent?.end && !formatOf(axis).searchable)) rejectAmbiguousAccess(axis)
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
  failAt('lower/unordered-lookup', axis.span, {
    message: `axis ${axis.name} is nonunique and unordered, so the entries of a coordinate are not contiguous, and elements below cannot be looked up`,
    expected: `accesses at the iterators of ${axis.name} and of the child axes`,
    hint: `iterate ${axis.name}, or declare ${axis.name} ordered`,
  })
}

function rejectAmbiguousAccess(axis: StoredAxis): never {
  failAt('lower/unordered-lookup', axis.span, {
    message: `axis ${axis.name} is below several entries of a coordinate, whose elements cannot be looked up`,
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

/** Translates the coordinate of one axis. Appends the conditions under which the position exists to `present`. */
function step(
  levels: Levels,
  scope: Scope,
  axis: StoredAxis,
  above: Position | null,
  coordinate: Expr,
  present: Expr[],
  loose: boolean,
): Position {
  const opened = loose ? undefined : openedAt(scope, axis, above?.at ?? null, coordinate)
  if (opened) return { at: opened.offset, end: null }
  const lookup = { coordinate, above, certain: all(present), facts: scope.facts, levels }
  const located = formatOf(axis).locate(axis, lookup)
  present.push(...located.present)
  return located.position
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
): { readonly segment: Segment; readonly certain: Expr } {
  checkTogether(root)
  const present: Expr[] = []
  const found = step(levels, scope, root, null, coord, present, repeatsCoordinates(root))
  if (found.end && !formatOf(axis).searchable) rejectAmbiguousAccess(axis)
  const certain = all(present)
  return { segment: segmentIf(certain, levels.segment(axis, found.at, found.end)), certain }
}

/** Returns `value` if the element exists, and `otherwise` if not. */
export const whenPresent = (place: ElementPosition, value: Expr, otherwise: Expr): Expr =>
  select(place.present.reduce(and, all([])), value, otherwise)
