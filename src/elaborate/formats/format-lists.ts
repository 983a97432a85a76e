/**
 * Lists of formats: axes that hold coordinates and no values (`ir/coordinates/derived-names.ts`). Checks of their kinds, widths
 * in the extents of axes over their positions, and unsupported uses.
 */
import { levelProperties } from '../../ast/nodes/axis-kinds.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import {
  chainTo,
  hasWidth,
  isDense,
  isNonunique,
  isStored,
  mapAxis,
  paddingOf,
  parentOf,
  type StoredAxis,
  sizesOfAxis,
} from '../../ir/coordinates/axis.ts'
import type { CoordinateList } from '../../ir/coordinates/derived-names.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars, substitute } from '../../ir/expressions/expr-tree.ts'
import { report } from '../diagnostics.ts'
import { type Declared, storedAxis } from '../kernels/kernel-names.ts'
import type { CoordinateMap } from './coordinate-maps.ts'
import type { Head, ListName } from './format-place.ts'

/** Checks declared lists, and substitutes their widths in extents that name them. */
export function declareLists(b: Ast.Description, head: Head, d: Declared): void {
  const lists = b.axes.filter((a) => a.list)
  if (lists.length === 0) return
  const widths = new Map<string, Expr>()
  for (const decl of lists) {
    const width = checkList(decl, b, head, d)
    if (width) widths.set(decl.name.name, width)
    else if (d.axes.delete(decl.name.name)) d.broken.add(decl.name.name)
  }
  for (const decl of b.axes) {
    const axis = storedAxis(d, decl.name.name)
    if (!axis) continue
    const parent = parentOf(axis)
    if (parent !== null && lists.some((l) => l.name.name === parent))
      report('check/list-parent', decl.span, {
        message: `${parent} is a list, and coordinates of a list cannot be the parent of an axis`,
        expected: `an axis over the positions: an extent of ${parent} under another axis`,
        hint: `\`axis ${axis.name} = dense_fixed(…, ${parent})\` has a coordinate for each position`,
      })
    if (!decl.list && !isDense(axis)) continue
    if (decl.claims.some((c) => c.name === 'full'))
      report('check/list-claim', decl.claims[0]!.span, {
        message: `the claim full of axis ${axis.name} is not supported in a format with lists`,
        expected: 'no claim',
      })
  }
  for (const [name, axis] of d.axes)
    if (isStored(axis))
      d.axes.set(
        name,
        mapAxis(
          axis,
          (x) => x,
          (e) => substitute(e, widths),
        ),
      )
}

function checkList(decl: Ast.AxisDecl, b: Ast.Description, head: Head, d: Declared): Expr | null {
  const name = decl.name.name
  if (levelProperties(decl.def.kind)?.positions !== 'width')
    return report('check/list-kind', decl.def.span, {
      message: `the list ${name} is ${decl.def.kind}`,
      expected:
        'sparse_fixed(parent, extent, width): the same number of positions under each position of the parent',
    })
  const axis = storedAxis(d, name)
  if (!axis || !hasWidth(axis)) return null
  const above = chainTo(d.axes, axis.name)
  const several = above.find((x) => d.axes.has(x) && isNonunique(d.axes.get(x)!))
  if (several !== undefined)
    return report('check/list-nonunique', decl.span, {
      message:
        several === name
          ? `the list ${name} is nonunique, and each coordinate must occur once`
          : `the list ${name} is stored under ${several}, where a coordinate may occur several times`,
      expected: 'a list (and parent axes) in which each coordinate occurs once',
    })
  const claim = decl.claims.find((c) => c.name !== 'compact')
  const padded = paddingOf(axis) !== null
  const other = claim
    ? `claimed ${claim.name}`
    : padded
      ? 'padded with a number'
      : decl.packed
        ? 'packed'
        : null
  if (other !== null)
    return report('check/list-claim', claim?.span ?? decl.padding?.span ?? decl.packed?.span ?? decl.span, {
      message: `the list ${name} is ${other}, which is not supported for lists`,
      expected: '`compact`, `padded with last`, or a list whose padding holds no coordinate and is skipped',
    })
  const names = new Set(sizesOfAxis(axis as StoredAxis).flatMap((e) => [...freeVars(e)]))
  const within = b.axes.find((a) => a.list && names.has(a.name.name))
  if (within)
    return report('check/list-size', decl.span, {
      message: `the sizes of the list ${name} depend on the list ${within.name.name}`,
      expected: 'sizes and parameters',
    })
  const open = head.params.find((p) => p.measured && freeVars(axis.width).has(p.name))
  if (open)
    return report('check/list-size', decl.span, {
      message: `the list ${name} has the width ${open.name}, which is measured`,
      expected: 'a width of sizes and parameters',
      hint: `declare ${open.name} without \`: size\``,
    })
  return axis.width
}

/** The lists that expressions can name, with the axes above them. */
export const listNames = (b: Ast.Description, d: Declared): readonly ListName[] =>
  b.axes.flatMap((a) => {
    const axis = a.list ? storedAxis(d, a.name.name) : null
    return axis ? [{ name: axis.name, under: chainTo(d.axes, axis.name).slice(0, -1) }] : []
  })

/**
 * The lists with their coordinates and positions in the map; `order` has the names that the map gives coordinates for.
 */
export const listsOf = (
  lists: readonly ListName[],
  order: readonly string[],
  { exprs, positions }: CoordinateMap,
  d: Declared,
): readonly CoordinateList[] =>
  lists.flatMap(({ name, under }) => {
    const axis = storedAxis(d, name)
    if (!axis || !hasWidth(axis)) return []
    return [{ axis, under, coordinate: exprs[order.indexOf(name)]!, position: positions.get(name) ?? null }]
  })
