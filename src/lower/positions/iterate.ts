/** Opening of an iterator: its loop, guards, and coordinates (SparseTIR's decompress, section 4.1). */
import { failAt, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Axis, StoredAxis } from '../../ir/coordinates/axis.ts'
import { isAttached, isDense, isStored, segmentSize } from '../../ir/coordinates/axis.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { add, and, div, int, load, lt, mod, mul, search, sub, variable } from '../../ir/expressions/expr.ts'
import { formatOf } from '../../levels/index.ts'
import type { Segment } from '../../levels/types.ts'
import { segmentAt } from './access.ts'
import type { Levels } from './level-positions.ts'
import { type Scope, withAxis, withFacts, withValue } from './nest-scope.ts'

export interface Opened {
  readonly extent: Expr
  /** Guards on the new position, which skip padding. */
  readonly guards: readonly Expr[]
  /** Conditions that hold by the loop's extent, because the kernel counts the entries of the axis. */
  readonly implied?: readonly Expr[]
  readonly scope: Scope
}

/** Opens iterator `name` over `axis`. `loopVar`: the loop variable, a position relative to its segment. */
export function openIterator(
  levels: Levels,
  scope: Scope,
  axis: Axis,
  name: string,
  loopVar: string,
  extentOfBuffer: (buffer: string) => Expr,
  inPositions: (e: Expr, scope: Scope) => Expr,
): Opened {
  const v = variable(loopVar)
  const inner = withFacts(scope)
  if (isStored(axis)) {
    const parent = axis.parent === null ? null : innermost(inner, levels, axis.parent).offset
    const opened = openSegment(inner, axis, levels.segment(axis, parent), name, v)
    const end = levels.end(axis.name)
    if (!end) return opened
    const extent = inPositions(end, inner)
    opened.scope.facts.coordinate(v, extent)
    return { ...opened, extent, implied: [lt(v, extent)] }
  }
  switch (axis.kind) {
    case 'fused':
      return openFused(levels, inner, axis.members, loopVar, inPositions)
    case 'gathered': {
      const coordinate = load(axis.buffer, [v])
      const base = levels.stored(axis.base)
      const extent = extentOfBuffer(axis.buffer)
      inner.facts.coordinate(v, extent)
      // The gathered axis is looked up only by its attached axes, through the coordinate.
      const opened = withAxis(bound(inner, name, coordinate, base.extent), axis.name, {
        parent: null,
        offset: v,
        coordinate,
      })
      return { extent, guards: rangeGuards(coordinate, base.extent), scope: opened }
    }
    case 'attached': {
      const base = levels.stored(axis.base)
      const parent = innermost(inner, levels, axis.parent)
      invariant(base.parent !== null, `axis ${base.name} has a parent`)
      const root = levels.stored(base.parent)
      const { segment, certain } = segmentAt(levels, inner, base, root, parent.coordinate)
      const opened = openSegment(inner, base, segment, name, v)
      // The segment of an absent parent has slots, too, so guards test that the parent exists.
      if (!formatOf(base).slots(base)) return opened
      return { ...opened, guards: opened.guards.map((g) => and(certain, g)) }
    }
  }
}

function openSegment(scope: Scope, axis: StoredAxis, segment: Segment, name: string, v: Expr): Opened {
  const { parent, length } = segment
  const { offset, coordinate, guards } = formatOf(axis).entry(axis, segment, v)
  scope.facts.coordinate(v, length)
  const opened = withAxis(bound(scope, name, coordinate, axis.extent), axis.name, {
    parent,
    offset,
    coordinate,
  })
  return { extent: length, guards, scope: opened }
}

/** The number of iterations per parent position; null if it varies. */
const slotsOf = (axis: StoredAxis): Expr | null => formatOf(axis).slots(axis) ?? segmentSize(axis)

/**
 * Opens a fused iterator: one loop over the positions of the last member. The position of each outer member is the segment that contains
 * the inner position: the last p with indptr[p] <= position, which skips empty segments. A bitmap cannot map positions to bits, so from a
 * bitmap on the loop runs over all slots, including empty ones. Throws SptError `lower/fused-bitmap` for a variable axis under a bitmap.
 */
function openFused(
  levels: Levels,
  scope: Scope,
  members: readonly string[],
  loopVar: string,
  inPositions: (e: Expr, scope: Scope) => Expr,
): Opened {
  const chain = members.map((m) => levels.stored(m))
  const mask = chain.findIndex((a) => formatOf(a).slots(a) !== null)
  const exact = mask < 0 ? chain.length : mask
  const places: Expr[] = [variable(loopVar)]
  for (let k = chain.length - 1; k > 0; k--) {
    const axis = chain[k]!
    const place = places[0]!
    const each = slotsOf(axis)
    if (each) places.unshift(div(place, each))
    else {
      if (k > exact) rejectUnderMask(axis, chain[exact]!)
      const segments = add(levels.positions(chain[k - 1]!.name), int(1))
      places.unshift(sub(search('upper', levels.offsets(axis.name), int(0), segments, place), int(1)))
    }
  }
  let out = scope
  let parent: Expr | null = null
  const guards: Expr[] = []
  const implied: Expr[] = []
  chain.forEach((axis, k) => {
    const place = places[k]!
    const segment = levels.segment(axis, parent)
    const each = k >= exact || isDense(axis) ? slotsOf(axis) : null
    const relative = each && parent !== null ? mod(place, each) : sub(place, segment.base)
    const entry = formatOf(axis).entry(axis, segment, relative)
    const { coordinate } = entry
    const offset = k < exact ? place : entry.offset
    out.facts.coordinate(offset, levels.positions(axis.name))
    const end = levels.end(axis.name)
    if (end) implied.push(lt(relative, inPositions(end, out)))
    guards.push(...entry.guards)
    out = withAxis(bound(out, axis.name, coordinate, axis.extent), axis.name, { parent, offset, coordinate })
    parent = offset
  })
  const above = levels.count(chain[exact - 1]!.name)
  const extent = chain.slice(exact).reduce((n, axis) => mul(n, slotsOf(axis) ?? int(1)), above)
  return { extent, guards, implied, scope: out }
}

function rejectUnderMask(axis: StoredAxis, mask: StoredAxis): never {
  failAt('lower/fused-bitmap', axis.span, {
    message: `a fused loop cannot run over ${axis.name}, which is ${axis.kind} under the bitmap ${mask.name}`,
    expected: `the bitmap ${mask.name} as the last member, or dense_fixed and sparse_fixed axes under ${mask.name}`,
    hint: `fuse down to ${mask.name} and iterate ${axis.name} inside`,
  })
}

function bound(scope: Scope, name: string, coordinate: Expr, extent: Expr): Scope {
  scope.facts.coordinate(coordinate, extent)
  return withValue(scope, name, coordinate)
}

const rangeGuards = (e: Expr, extent: Expr): Expr[] => [lt(int(-1), e), lt(e, extent)]

/** Returns the innermost open iterator of an axis, or of its attached view. */
function innermost(scope: Scope, levels: Levels, name: string) {
  const axis = levels.axis(name)
  const stored = isAttached(axis) ? axis.base : axis.name
  const opened = scope.open.get(stored)?.at(-1)
  invariant(opened, `axis ${name} is iterated inside its children`)
  return opened
}
