/**
 * Opening an iterator: the loop it becomes, the conditions on it, and the coordinates it brings into scope
 * (SparseTIR's decompress, section 4.1).
 */
import { invariant } from '../../ast/diagnostic.ts'
import { type Axis, indptrOf, type StoredAxis } from '../../ir/axis.ts'
import { add, div, type Expr, int, load, lt, mod, search, sub, variable } from '../../ir/expr.ts'
import { segmentAt } from './access.ts'
import type { Levels } from './levels.ts'
import { type Scope, withAxis, withFacts, withValue } from './scope.ts'

export interface Opened {
  readonly extent: Expr
  /** Conditions on the new position: padding is skipped. */
  readonly guards: readonly Expr[]
  readonly scope: Scope
}

/** Opens iterator `name` over `axis` with loop variable `loopVar` (a relative position). */
export function openIterator(
  levels: Levels,
  scope: Scope,
  axis: Axis,
  name: string,
  loopVar: string,
  extentOfBuffer: (buffer: string) => Expr,
): Opened {
  const v = variable(loopVar)
  const inner = withFacts(scope)
  switch (axis.kind) {
    case 'fused':
      return openFused(levels, inner, axis.members, loopVar)
    case 'gathered': {
      const coordinate = load(axis.buffer, [v], 'i32')
      const base = levels.stored(axis.base)
      const extent = extentOfBuffer(axis.buffer)
      inner.facts.coordinate(v, extent)
      // Only what is attached to the list looks for it: by its coordinate.
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
      const segment = segmentAt(levels, inner, base, root, parent.coordinate)
      return openSegment(levels, inner, base, segment, name, v)
    }
    default: {
      const parent = axis.parent === null ? null : innermost(inner, levels, axis.parent).offset
      return openSegment(levels, inner, axis, { parent, ...levels.segment(axis, parent) }, name, v)
    }
  }
}

function openSegment(
  levels: Levels,
  scope: Scope,
  axis: StoredAxis,
  segment: { readonly parent: Expr | null; readonly base: Expr; readonly length: Expr },
  name: string,
  v: Expr,
): Opened {
  const { parent, base, length } = segment
  const offset = add(base, v)
  const coordinate = levels.coordinate(axis, offset, v)
  scope.facts.coordinate(v, length)
  const opened = withAxis(bound(scope, name, coordinate, axis.extent), axis.name, {
    parent,
    offset,
    coordinate,
  })
  return { extent: length, guards: paddingGuards(axis, coordinate), scope: opened }
}

/**
 * One loop over the last member's positions; each outer member's position is the segment the inner one lies
 * in: the last p with indptr[p] <= position, so that empty segments are passed over.
 */
function openFused(levels: Levels, scope: Scope, members: readonly string[], loopVar: string): Opened {
  const chain = members.map((m) => levels.stored(m))
  const last = chain[chain.length - 1]
  invariant(last, 'a fused axis has members')
  const offsets: Expr[] = [variable(loopVar)]
  for (let k = chain.length - 1; k > 0; k--) {
    const axis = chain[k]!
    const offset = offsets[0]!
    if (axis.kind === 'sparse_fixed') offsets.unshift(div(offset, axis.width))
    else if (axis.kind === 'dense_fixed') offsets.unshift(div(offset, axis.extent))
    else {
      const segments = add(levels.positions(chain[k - 1]!.name), int(1))
      offsets.unshift(sub(search('upper', indptrOf(axis.name), int(0), segments, offset), int(1)))
    }
  }
  let out = scope
  const guards: Expr[] = []
  chain.forEach((axis, k) => {
    const parent = k === 0 ? null : offsets[k - 1]!
    const offset = offsets[k]!
    const relative =
      axis.kind === 'dense_fixed' && parent !== null
        ? mod(offset, axis.extent)
        : sub(offset, levels.segment(axis, parent).base)
    const coordinate = levels.coordinate(axis, offset, relative)
    out.facts.coordinate(offset, levels.positions(axis.name))
    guards.push(...paddingGuards(axis, coordinate))
    out = withAxis(bound(out, axis.name, coordinate, axis.extent), axis.name, { parent, offset, coordinate })
  })
  return { extent: levels.positions(last.name), guards, scope: out }
}

function bound(scope: Scope, name: string, coordinate: Expr, extent: Expr): Scope {
  scope.facts.coordinate(coordinate, extent)
  return withValue(scope, name, coordinate)
}

const paddingGuards = (axis: StoredAxis, coordinate: Expr): Expr[] =>
  axis.kind === 'sparse_fixed' ? [lt(coordinate, axis.extent)] : []

const rangeGuards = (e: Expr, extent: Expr): Expr[] => [lt(int(-1), e), lt(e, extent)]

/** The innermost opening of an axis, or of the attached view of it. */
function innermost(scope: Scope, levels: Levels, name: string) {
  const axis = levels.axis(name)
  const stored = axis.kind === 'attached' ? axis.base : axis.name
  const opened = scope.open.get(stored)?.at(-1)
  invariant(opened, `axis ${name} is iterated inside its children`)
  return opened
}
