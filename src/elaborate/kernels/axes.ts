/** Declaration of parameters and axes of a kernel, and of the axes of a format, which have the same syntax. */
import { levelProperties, operandsOf } from '../../ast/nodes/axis-kinds.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Axis, PaddedAxis, StoredAxis } from '../../ir/coordinates/axis.ts'
import {
  chainTo,
  FIELD_WIDTHS,
  hasIndices,
  hasIndptr,
  hasWidth,
  isBranchless,
  isFused,
  isInvalidExtent,
  isInvalidPacking,
  isStored,
  maxExtentOf,
  parentOf,
} from '../../ir/coordinates/axis.ts'
import { type Expr, int, variable } from '../../ir/expressions/expr.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { type Dtype, isWord } from '../../ir/values/dtype.ts'
import { report } from '../diagnostics.ts'
import { type Names, settled } from '../expressions/expressions.ts'
import { asIndex, plain, type Typed } from '../expressions/type-conversion.ts'
import { type Declared, declare, storedAxis, tooLong, unknownAxis } from './kernel-names.ts'

export function declareParams(d: Declared, params: readonly Ast.Param[]): void {
  for (const p of params) {
    if (!declare(d, p.name, 'parameter')) continue
    const size = p.type.name === 'size'
    const dtype = size ? 'i32' : (p.type.name as Dtype)
    d.params.set(p.name.name, { name: p.name.name, kind: size ? 'size' : 'scalar', dtype, span: p.span })
  }
}

/** The names that an extent may use: `names`, each of type `index`. Other names, accesses and fields are reported. */
export function sizeNames(names: ReadonlySet<string>, what: string): Names {
  const expected = `an integer expression over ${what}`
  const only = (span: Ast.Expr['span']): null =>
    report('check/extent', span, { message: `an extent depends on ${what} only`, expected })
  return {
    name(e): Typed | null {
      if (names.has(e.name)) return plain(variable(e.name, 'index', e.span))
      return report('check/unknown-size', e.span, {
        message: `${e.name} is not a size`,
        expected,
        lookup: { name: e.name, candidates: [...names] },
      })
    },
    access: (e) => only(e.span),
    field: (e) => only(e.span),
  }
}

function extentExpr(e: Ast.Expr, names: Names): Expr | null {
  const x = settled(e, { ...names, sizes: () => true })
  if (!x) return null
  if (!isWord(x.dtype))
    return report('check/extent-type', e.span, {
      message: `an extent is an integer, and this is ${x.dtype}`,
      expected: 'an integer expression over sizes',
    })
  if (x.kind === 'const' && x.value < 0)
    return report('check/extent-negative', e.span, {
      message: `an extent cannot be ${x.value}`,
      expected: 'an extent of 0 or more',
    })
  return asIndex(x)
}

/**
 * Declares axes, which may refer to each other in any order: stored axes first, parents before children, then views.
 */
export function declareAxes(d: Declared, decls: readonly Ast.AxisDecl[], names: Names): void {
  const pending = new Map<string, Ast.AxisDecl>()
  for (const a of decls) if (declare(d, a.name, a.list ? 'list' : 'axis')) pending.set(a.name.name, a)
  const visit = (a: Ast.AxisDecl, path: readonly Ast.AxisDecl[]): void => {
    const name = a.name.name
    if (d.axes.has(name) || d.broken.has(name)) return
    if (path.includes(a)) {
      d.broken.add(name)
      report('check/axis-cycle', a.name.span, {
        message: `axis ${name} is its own ancestor`,
        labels: path
          .slice(path.indexOf(a) + 1)
          .map((x) => ({ span: x.name.span, text: 'on the way around' })),
        hint: 'change or remove a parent on this cycle',
      })
      return
    }
    for (const need of refersTo(a.def)) {
      const other = pending.get(need.name)
      if (other) visit(other, [...path, a])
    }
    if (d.broken.has(name)) return
    const axis = build(d, a, names)
    if (axis) d.axes.set(name, axis)
    else d.broken.add(name)
  }
  const isView = (a: Ast.AxisDecl): boolean => !levelProperties(a.def.kind)
  for (const a of pending.values()) if (!isView(a)) visit(a, [])
  for (const a of pending.values()) if (isView(a)) visit(a, [])
  for (const a of d.axes.values()) if (hasWidth(a) && isBranchless(a)) linkToParent(d, a)
}

/**
 * An axis with indices above a branchless axis has a position for each element. If it has no other positions, the
 * branchless axis has no padding.
 */
function linkToParent(d: Declared, axis: PaddedAxis): void {
  const parent = d.axes.get(axis.parent)
  if (!hasIndices(parent)) return
  if (parent.unique) d.axes.set(parent.name, { ...parent, unique: false, perChild: true })
  if (hasIndptr(parent) || (hasWidth(parent) && isBranchless(parent) && parent.compact))
    d.axes.set(axis.name, { ...axis, compact: true })
}

const refersTo = (def: Ast.AxisDef): readonly Ast.Ident[] =>
  operandsOf(def).flatMap((o): readonly Ast.Ident[] =>
    o.kind === 'size' || o.kind === 'buffer' || o.value === null
      ? []
      : o.kind === 'axes'
        ? o.value
        : [o.value],
  )

/**
 * The axis of this name. Returns null, and reports an error once, if there is no such axis, or if it is a view and
 * `views` is false.
 */
function find(d: Declared, name: Ast.Ident, views: boolean): Axis | null {
  const a = d.axes.get(name.name)
  if (a && (views || isStored(a))) return a
  if (d.broken.has(name.name)) return null
  if (a)
    return report('check/view', name.span, {
      message: `${name.name} is ${a.kind}: a view that stores nothing`,
      expected: 'a dense or sparse axis',
      ...(a.span && { labels: [{ span: a.span, text: 'declared here' }] }),
    })
  return unknownAxis(d, name)
}

function build(d: Declared, decl: Ast.AxisDecl, names: Names): Axis | null {
  const { def } = decl
  const base = { name: decl.name.name, span: decl.span }
  switch (def.kind) {
    case 'fused':
      return fused(d, def, base)
    case 'attached':
      return attached(d, def, base)
    case 'gathered': {
      const of = find(d, def.base, false)
      // Buffers are declared after axes, so `checkGathered` checks the list.
      return of && { ...base, kind: def.kind, base: of.name, buffer: def.buffer.name }
    }
    default:
      return stored(d, decl, names)
  }
}

function stored(d: Declared, decl: Ast.AxisDecl, names: Names): Axis | null {
  const { def, span } = decl
  const sized = (e: Ast.Expr): Expr | null => extentExpr(e, names)
  let broken = false
  const known = <T>(x: T | null): T | null => {
    broken ||= x === null
    return x
  }
  const operands = operandsOf(def).map(({ field, kind, value }) => [
    field,
    kind === 'size' ? known(sized(value)) : value && known(find(d, value as Ast.Ident, false))?.name,
  ])
  // A size with the name `last` takes precedence over the keyword.
  const last = decl.padding?.kind === 'name' && decl.padding.name === 'last' && !d.places.has('last')
  const padding = last ? 'last' : decl.padding && known(sized(decl.padding))
  const packed = decl.packed && known(sized(decl.packed))
  if (broken) return null
  // Without modifiers, coordinates ascend.
  const { ordered, unique } = 'ordered' in def ? def : { ordered: true, unique: true }
  const fields = {
    name: decl.name.name,
    span,
    kind: def.kind,
    ...Object.fromEntries(operands),
    ...(packed && { packed }),
  }
  const bare = fields as unknown as StoredAxis
  const axis = hasIndices(bare) ? { ...bare, ordered, unique } : bare
  if (!hasWidth(axis)) return axis
  const width = isBranchless(axis) ? int(1) : axis.width
  const compact = decl.claims.some((c) => c.name === 'compact') ? { compact: true } : {}
  // Padding with the extent is the default: a position without a coordinate.
  const own = padding && (padding === 'last' || !sameExpr(padding, axis.extent))
  return { ...axis, width, ...compact, ...(own && { padding }) }
}

function fused(
  d: Declared,
  def: Ast.AxisDefOf<'fused'>,
  base: { name: string; span: Ast.Expr['span'] },
): Axis | null {
  const members = def.members.map((m) => find(d, m, false))
  if (members.some((m) => m === null)) return null
  for (const [k, m] of (members as StoredAxis[]).entries()) {
    const above = k === 0 ? null : members[k - 1]!.name
    if (parentOf(m) === above) continue
    const chain = chainTo(d.axes, m.name)
    return report('check/fused-chain', def.members[k]!.span, {
      message:
        k === 0
          ? `fused starts at ${m.name}, which is not a root`
          : `fused goes from ${above} to ${m.name}, which is not a child of ${above}`,
      expected: 'a chain of axes from a root to a child',
      ...(chain.length > 1 && { hint: `fused(${chain.join(', ')})` }),
    })
  }
  return { ...base, kind: 'fused', members: members.map((m) => m!.name) }
}

function attached(
  d: Declared,
  def: Ast.AxisDefOf<'attached'>,
  base: { name: string; span: Ast.Expr['span'] },
): Axis | null {
  const of = find(d, def.base, false)
  const parent = find(d, def.parent, true)
  if (!of || !parent) return null
  const own = parentOf(of)
  const root = own === null ? null : storedAxis(d, own)
  if (!root || parentOf(root) !== null)
    return report('check/attached-base', def.base.span, {
      message: `${of.name} cannot be attached: it has ${own === null ? 'no parent' : 'a parent that is not a root'}`,
      expected: 'a child of a root axis, which a coordinate of that root can enter',
    })
  if (isFused(parent))
    return report('check/attached-parent', def.parent.span, {
      message: `${parent.name} is fused and has no single coordinate to enter ${of.name} by`,
      hint: `attach to a member: ${parent.members.join(', ')}`,
    })
  const through = isStored(parent) ? parent : storedAxis(d, parent.base)
  if (through && tooLong(through.extent, root.extent))
    return report('check/shape', def.parent.span, {
      message: `the coordinates of ${parent.name} do not match those of ${root.name}, the parent of ${of.name}`,
      ...(root.span && { labels: [{ span: root.span, text: `${root.name} is declared here` }] }),
      hint: 'give both axes the same size',
    })
  return { ...base, kind: 'attached', base: of.name, parent: parent.name }
}

/**
 * Reports extents and widths of packed coordinates that must be constants, and are not, or are too large. In a format,
 * they are constant only after arguments are given.
 */
export function checkConstants(d: Declared): void {
  for (const a of d.axes.values()) {
    if (isStored(a) && isInvalidExtent(a))
      report('check/bitmap-extent', a.extent.span ?? a.span, {
        message: `the ${a.kind} ${a.name} has ${a.extent.kind === 'const' ? `${a.extent.value} bits` : 'an extent that is not a constant'}`,
        expected: `a constant up to ${maxExtentOf(a)}`,
        hint: 'use sparse_variable',
      })
    if (hasIndices(a) && isInvalidPacking(a))
      report('check/packed', a.packed?.span ?? a.span, {
        message: `the coordinates of ${a.name} are packed into ${a.packed?.kind === 'const' ? `${a.packed.value} bits` : 'fields of no constant size'}`,
        expected: FIELD_WIDTHS,
      })
  }
}
