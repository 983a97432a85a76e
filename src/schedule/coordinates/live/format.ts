/**
 * Recognition of formats, or parts of formats, that a kernel can build from a dense tensor at run time: coordinates
 * are marked, counted and placed in a list for each outer group. The inverse map must be an affine tiling of the
 * tensor's coordinates by outer axes, the listed coordinate and inner axes. Then each coordinate has one place, for
 * any data, and needs no check at run time.
 */

import { linear } from '../../../analysis/integers/linear.ts'
import { tileReach } from '../../../analysis/integers/tiles.ts'
import { failAt, type Span } from '../../../ast/diagnostics/diagnostic.ts'
import type { Axis, IndexedAxis, StoredAxis } from '../../../ir/coordinates/axis.ts'
import {
  chainTo,
  hasIndices,
  hasWidth,
  isDense,
  isNonunique,
  isPadded,
  isRagged,
  paddingOf,
  padsWithLast,
  parentOf,
  sourceName,
} from '../../../ir/coordinates/axis.ts'
import type { CoordinateList } from '../../../ir/coordinates/derived-names.ts'
import { div, type Expr, int, isOne, variable } from '../../../ir/expressions/expr.ts'
import { rewriteExpr, substitute } from '../../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../../ir/expressions/structural-equality.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'
import { printExpr1 } from '../../../ir/print/print-stage1.ts'
import { QUERY_TEXTS } from '../as/lookup.ts'

/**
 * A format as its builder needs it: the listed coordinates under each position of `outer`, in groups if `group` is
 * not null.
 */
export interface LiveFormat {
  readonly outer: readonly StoredAxis[]
  /**
   * The axis that counts groups of `width` listed coordinates; null if each list is a single group of variable
   * length.
   */
  readonly group: StoredAxis | null
  readonly width: number
  /** The name of the axis over positions of a list. */
  readonly position: string
  readonly inner: readonly StoredAxis[]
  /** The name of the list. */
  readonly list: string
  /** The number of coordinates that a list may contain at most. */
  readonly extent: Expr
  /** The coordinate at unused positions: that of the last used position (`last`), or this expression. */
  readonly padding: Expr | 'last'
  /** True if groups are visited as a whole: the format has a mask, and unused positions repeat a coordinate. */
  readonly repeats: boolean
  /** The format's map of each axis and of the list, over the tensor's axes. */
  readonly digits: ReadonlyMap<string, Expr>
  /** Returns the tensor's coordinates, over the outer and inner axes and the given listed coordinate. */
  readonly inverse: (listed: Expr) => readonly Expr[]
}

const OTHERWISE = 'or bind the tensor in this format: leave out `live`'

/** Throws `schedule/live-format` for the reason `why`. `wanted` replaces the general `expected` and hint. */
export const refuseLive = (
  text: string,
  why: string,
  wanted?: { readonly expected: string; readonly hint?: string; readonly span?: Span | undefined },
): never =>
  failAt('schedule/live-format', wanted?.span, {
    message: `${text} cannot be built at run time: ${why}`,
    expected:
      wanted?.expected ??
      'a single list of coordinates under dense axes, with an affine inverse map such as io * 16 + ih * 4 + ii',
    hint: `${wanted?.hint ?? 'choose a format like panels, sr_bcrs, bsr or csr'}, ${OTHERWISE}`,
  })

const UNPACKED = 'coordinates of 32 bits each'

type Refuse = (why: string, expected?: string) => never

/** Recognises one part, over these axes of the tensor. @throws SptError `schedule/live-format` */
export function liveFormat(part: FormatInstance, text: string, over: readonly StoredAxis[]): LiveFormat {
  const refuse: Refuse = (why, expected) =>
    refuseLive(text, why, expected === undefined ? undefined : { expected })
  checkSimple(part, refuse)
  const { axis, list } = listedIn(part, refuse)
  const ragged = part.axes.filter(isRagged)
  const [group = null] = ragged
  if (ragged.length > 1) refuse(`${ragged.map((a) => a.name).join(' and ')} are of variable length`)
  if (hasWidth(axis) ? parentOf(axis) !== group?.name : group !== null)
    refuse(`${axis.name} is not a variable-length index list`)
  const width = hasWidth(axis) ? axis.width : int(1)
  if (width.kind !== 'const') return refuse(`the width of ${axis.name} is not a constant`)
  const chain = chainTo(new Map<string, Axis>(part.axes.map((a) => [a.name, a])), (group ?? axis).name)
  const outer = chain.slice(0, -1).map((name) => part.axes.find((a) => a.name === name)!)
  const sparse = outer.findLast((a) => !isDense(a))
  if (sparse) refuse(`${sparse.name}, which is above ${(group ?? axis).name}, is not dense`)
  const digits = new Map(part.order.map((name, k) => [name, part.map[k]!]))
  const position = list ? positionOf(list, part, digits, refuse) : axis.name
  const inner = part.axes.filter(
    (a) => !outer.includes(a) && a !== group && a.name !== axis.name && a.name !== position,
  )
  for (const a of inner) if (!isDense(a)) refuse(`${a.name} is stored by coordinates`)
  if (list) digits.set(axis.name, list.coordinate)
  const isListed = (x: Expr): boolean =>
    list ? x.kind === 'load' && x.buffer === axis.name : x.kind === 'var' && x.name === axis.name
  const format: LiveFormat = {
    outer,
    group,
    width: width.value,
    position,
    inner,
    list: axis.name,
    extent: axis.extent,
    digits,
    padding: padsWithLast(axis) ? 'last' : (paddingOf(axis) ?? axis.extent),
    repeats: part.mask !== undefined && group !== null && isPadded(axis),
    inverse: (listed) => part.inverse.map((e) => rewriteExpr(e, (x) => (isListed(x) ? listed : undefined))),
  }
  if (group) checkGroups(format, group.name, part, over, refuse)
  checkDigits(format.inverse(variable(axis.name)), [...outer, ...inner, axis], over, refuse)
  return format
}

/** Rejects features that need more than a bitmask: sorts, queries except ranks, claims, measured sizes, packed coordinates. */
function checkSimple(
  { sorts, queries, claims, measured, axes, lists }: FormatInstance,
  refuse: Refuse,
): void {
  if (sorts.length > 0) refuse('it sorts coordinates', 'coordinates in their own order')
  const query = queries.find((q) => q.kind !== 'rank')
  if (query) refuse(`its map depends on ${QUERY_TEXTS[query.kind]}`, 'a map over coordinates and their ranks')
  if (claims.length > 0) refuse(`${claims[0]!.axis} is claimed ${claims[0]!.claim}`, 'no claims')
  if (measured.length > 0) refuse(`${measured[0]!.name} is measured`, `a number for ${measured[0]!.name}`)
  const packed = [...axes, ...lists.map((l) => l.axis)].find((a) => hasIndices(a) && a.packed)
  if (packed) refuse(`the coordinates of ${packed.name} are packed`, UNPACKED)
}

function listedIn({ axes, lists }: FormatInstance, refuse: Refuse) {
  const found = [
    ...axes.filter(hasIndices).map((axis) => ({ axis, list: null })),
    ...lists.map((list) => ({ axis: list.axis as IndexedAxis, list })),
  ]
  const [first] = found
  if (!first || found.length > 1) return refuse('it does not have exactly one list of coordinates')
  if (isNonunique(first.axis) || !first.axis.ordered) refuse(`${first.axis.name} is not ordered and unique`)
  return first
}

type Maps = ReadonlyMap<string, Expr>

function positionOf(
  { axis, position }: CoordinateList,
  part: FormatInstance,
  maps: Maps,
  refuse: Refuse,
): string {
  const name = [...maps].find(([, e]) => e.kind === 'var' && e.name === position)?.[0]
  const over = part.axes.find((a) => a.name === name)
  if (position === null || !isDense(over) || !hasWidth(axis) || !sameExpr(over.extent, axis.width))
    return refuse(`no dense axis is over the positions of ${axis.name}`)
  return over.name
}

/** The group axis counts groups of `width` consecutive coordinates, in coordinate order under the outer axes. */
function checkGroups(
  { outer, digits, list, width }: LiveFormat,
  group: string,
  { queries }: FormatInstance,
  over: readonly StoredAxis[],
  refuse: Refuse,
): void {
  const listed = digits.get(list)!
  const keys = (exprs: readonly Expr[]): string => [...new Set(exprs.map(keyOf))].sort().join('; ')
  // An axis with one position does not separate coordinates.
  const above = outer.map((a) => digits.get(a.name)!).filter((e) => e.kind !== 'const')
  const isRank = queries.some(
    (q) =>
      q.kind === 'rank' &&
      q.of.length === 1 &&
      sameExpr(q.of[0]!, listed) &&
      keys(q.by) === keys(above) &&
      sameExpr(digits.get(group)!, div(variable(q.name), int(width))),
  )
  if (isRank) return
  const texts = new Map(over.map((a) => [a.name, variable(sourceName(a))]))
  const textOf = (e: Expr): string => printExpr1(substitute(e, texts))
  const by = above.length > 0 ? ` by ${above.map(textOf).join(', ')}` : ''
  refuse(
    `${group} does not count groups of ${width} listed coordinates by their rank`,
    `rank(${textOf(listed)}${by}) / ${width}`,
  )
}

/** Checks that each axis is one digit of one of the tensor's coordinates, which are `inverse`. */
function checkDigits(
  inverse: readonly Expr[],
  axes: readonly StoredAxis[],
  over: readonly StoredAxis[],
  refuse: Refuse,
): void {
  const extents = new Map(axes.map((a) => [a.name, a.extent]))
  const used = new Set<string>()
  /** Returns whether `e` has digits for all numbers below `end`, and no tile beyond. */
  const isDigits = (e: Expr, end: Expr): boolean => {
    const { terms, constant } = linear(e)
    const axesIn = [...terms.values()].map(({ term, coefficient }) => {
      const name = term.kind === 'var' && !used.has(term.name) ? term.name : ''
      used.add(name)
      return { of: name, stride: int(coefficient), extent: extents.get(name) }
    })
    const reach = constant === 0 && axesIn.length > 0 ? tileReach(axesIn, end) : undefined
    return reach === 'exact' || reach === 'partial'
  }
  const wrong = inverse.findIndex((e, k) => !isDigits(e, over[k]!.extent))
  if (wrong >= 0) refuse(`its coordinates of ${sourceName(over[wrong]!)} are not made of digits`)
  const unused = axes.find((a) => !used.has(a.name) && !isOne(a.extent))
  if (unused) refuse(`no coordinate depends on ${unused.name}`)
}
