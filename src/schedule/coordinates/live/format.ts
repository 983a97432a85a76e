/**
 * Recognition of formats, or parts of formats, that a kernel can build from a dense tensor at run time: coordinates
 * are marked, counted and placed in a list for each outer group. The inverse map must be an affine tiling of the
 * tensor's coordinates by outer axes, the listed coordinate and inner axes. Then each coordinate has one place, for
 * any data, and needs no check at run time.
 */

import { linear } from '../../../analysis/integers/linear.ts'
import { tileReach } from '../../../analysis/integers/tiles.ts'
import { failAt } from '../../../ast/diagnostics/diagnostic.ts'
import type { IndexedAxis, StoredAxis } from '../../../ir/coordinates/axis.ts'
import {
  hasIndices,
  hasWidth,
  isDense,
  isNonunique,
  isPadded,
  isRagged,
  paddingOf,
  padsWithLast,
  parentOf,
} from '../../../ir/coordinates/axis.ts'
import type { CoordinateList } from '../../../ir/coordinates/derived-names.ts'
import { type Const, div, type Expr, int, variable } from '../../../ir/expressions/expr.ts'
import { rewriteExpr, substitute } from '../../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../../ir/expressions/structural-equality.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'
import { printExpr1 } from '../../../ir/print/print-stage1.ts'
import { ASKED } from '../as/lookup.ts'
import type { StepSpan } from '../as/tensor-split.ts'

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
  at: StepSpan,
  wanted?: { readonly expected: string; readonly hint?: string },
): never =>
  failAt('schedule/live-format', at.span, {
    message: `${text} cannot be built at run time: ${why}`,
    expected:
      wanted?.expected ??
      'a single list of coordinates under dense axes, with an affine inverse map such as io * 16 + ih * 4 + ii',
    hint: `${wanted?.hint ?? 'choose a format like panels, sr_bcrs, bsr or csr'}, ${OTHERWISE}`,
  })

const UNPACKED = 'coordinates of 32 bits each'

/** The tensor's axes that a format covers (`over`), and the same axes as the kernel's text names them (`named`). */
interface OverAxes {
  readonly over: readonly StoredAxis[]
  readonly named: readonly StoredAxis[]
}

/** Recognises one part. @throws SptError `schedule/live-format` */
export const liveFormat = (part: FormatInstance, text: string, axes: OverAxes, at: StepSpan): LiveFormat =>
  new Recognition(part, axes, (why, expected) =>
    refuseLive(text, why, at, expected === undefined ? undefined : { expected }),
  ).format()

class Recognition {
  readonly #part: FormatInstance
  readonly #over: readonly StoredAxis[]
  /** Coordinates under the names of the kernel's text. */
  readonly #texts: ReadonlyMap<string, Expr>
  readonly #refuse: (why: string, expected?: string) => never
  readonly #maps: ReadonlyMap<string, Expr>

  constructor(
    part: FormatInstance,
    { over, named }: OverAxes,
    refuse: (why: string, expected?: string) => never,
  ) {
    this.#part = part
    this.#over = named
    this.#texts = new Map(over.map((a, k) => [a.name, variable(named[k]!.name)]))
    this.#refuse = refuse
    this.#maps = new Map(part.order.map((name, k) => [name, part.map[k]!]))
  }

  format(): LiveFormat {
    const part = this.#part
    this.#simple()
    const { axis, list } = this.#listed()
    const ragged = part.axes.filter(isRagged)
    const [group = null] = ragged
    if (ragged.length > 1) this.#refuse(`${ragged.map((a) => a.name).join(' and ')} are of variable length`)
    if (hasWidth(axis) ? parentOf(axis) !== group?.name : group !== null)
      this.#refuse(`${axis.name} is not a variable-length index list`)
    const width = hasWidth(axis) ? axis.width : int(1)
    if (width.kind !== 'const') return this.#refuse(`the width of ${axis.name} is not a constant`)
    const outer = this.#above(group ?? axis)
    const position = list ? this.#positionOf(list) : axis.name
    const inner = part.axes.filter(
      (a) => !outer.includes(a) && a !== group && a.name !== axis.name && a.name !== position,
    )
    for (const a of inner) if (!isDense(a)) this.#refuse(`${a.name} is stored by coordinates`)
    const coordinate = list ? list.coordinate : this.#maps.get(axis.name)!
    if (group) this.#grouped(group, width, coordinate, outer)
    const inverse = (listed: Expr): readonly Expr[] =>
      part.inverse.map((e) =>
        rewriteExpr(e, (x) => {
          if (x.kind === 'load' && x.buffer === list?.axis.name) return listed
          return x.kind === 'var' && !list && x.name === axis.name ? listed : undefined
        }),
      )
    this.#digits(inverse(variable(axis.name)), [...outer, ...inner], axis)
    return {
      outer,
      group,
      width: width.value,
      position,
      inner,
      list: axis.name,
      extent: axis.extent,
      digits: new Map(this.#maps).set(axis.name, coordinate),
      padding: padsWithLast(axis) ? 'last' : (paddingOf(axis) ?? axis.extent),
      repeats: this.#part.mask !== undefined && group !== null && isPadded(axis),
      inverse,
    }
  }

  /**
   * Rejects features that cannot be built from a bitmask: sorts, queries except ranks, claims, measured sizes, packed
   * coordinates.
   */
  #simple(): void {
    const { sorts, queries, claims, measured, axes } = this.#part
    if (sorts.length > 0) this.#refuse('it sorts coordinates', 'coordinates in their own order')
    const asked = queries.find((q) => q.kind !== 'rank')
    if (asked) this.#refuse(`its map asks for ${ASKED[asked.kind]}`, 'a map over coordinates and their ranks')
    if (claims.length > 0) this.#refuse(`${claims[0]!.axis} is claimed ${claims[0]!.claim}`, 'no claims')
    if (measured.length > 0)
      this.#refuse(`${measured[0]!.name} is measured`, `a number for ${measured[0]!.name}`)
    const packed = axes.find((a) => hasIndices(a) && a.packed)
    if (packed) this.#refuse(`the coordinates of ${packed.name} are packed`, UNPACKED)
  }

  #listed(): { readonly axis: IndexedAxis; readonly list: CoordinateList | null } {
    const { axes, lists } = this.#part
    const found = [
      ...axes.filter(hasIndices).map((axis) => ({ axis, list: null })),
      ...lists.map((list) => ({ axis: list.axis as IndexedAxis, list })),
    ]
    const [first] = found
    if (!first || found.length > 1) return this.#refuse('it does not have exactly one list of coordinates')
    const { axis } = first
    if (isNonunique(axis) || !axis.ordered) this.#refuse(`${axis.name} is not ordered and unique`)
    if (axis.packed) this.#refuse(`the coordinates of ${axis.name} are packed`, UNPACKED)
    return first
  }

  #above(axis: StoredAxis): readonly StoredAxis[] {
    const out: StoredAxis[] = []
    for (let p = parentOf(axis); p !== null; p = parentOf(out[0]!)) {
      const above = this.#part.axes.find((a) => a.name === p)!
      if (!isDense(above)) this.#refuse(`${above.name}, which is above ${axis.name}, is not dense`)
      out.unshift(above)
    }
    return out
  }

  #positionOf({ axis, position }: CoordinateList): string {
    const name = [...this.#maps].find(([, e]) => e.kind === 'var' && e.name === position)?.[0]
    const over = this.#part.axes.find((a) => a.name === name)
    if (position === null || !isDense(over) || !hasWidth(axis) || !sameExpr(over.extent, axis.width))
      return this.#refuse(`no dense axis is over the positions of ${axis.name}`)
    return over.name
  }

  /** The group axis counts groups of `width` consecutive coordinates, in coordinate order under the outer axes. */
  #grouped(group: StoredAxis, width: Const, coordinate: Expr, outer: readonly StoredAxis[]): void {
    const keys = (of: readonly Expr[]): string => [...new Set(of.map(keyOf))].sort().join('; ')
    // An axis with one position does not separate coordinates.
    const above = outer.map((a) => this.#maps.get(a.name)!).filter((e) => e.kind !== 'const')
    const by = keys(above)
    const rank = this.#part.queries.find(
      (q) =>
        q.kind === 'rank' &&
        q.of.length === 1 &&
        sameExpr(q.of[0]!, coordinate) &&
        keys(q.by) === by &&
        sameExpr(this.#maps.get(group.name)!, div(variable(q.name), width)),
    )
    if (rank) return
    const textOf = (e: Expr): string => printExpr1(substitute(e, this.#texts))
    const groups = above.length > 0 ? ` by ${above.map(textOf).join(', ')}` : ''
    this.#refuse(
      `${group.name} does not count groups of ${width.value} listed coordinates by their rank`,
      `rank(${textOf(coordinate)}${groups}) / ${width.value}`,
    )
  }

  /** Checks that each axis is one digit of one of the tensor's coordinates. */
  #digits(inverse: readonly Expr[], axes: readonly StoredAxis[], listed: IndexedAxis): void {
    const extents = new Map([...axes, listed].map((a) => [a.name, a.extent]))
    const used = new Set<string>()
    /** Returns whether `e` has digits for all numbers below `end`, and no tile beyond. */
    const isDigits = (e: Expr, end: Expr): boolean => {
      const { terms, constant } = linear(e)
      const axesIn = [...terms.values()].map(({ term, coefficient }) => {
        const of = term.kind === 'var' && !used.has(term.name) ? term.name : ''
        used.add(of)
        return { of, stride: int(coefficient), extent: extents.get(of) }
      })
      const reach = constant === 0 && axesIn.length > 0 ? tileReach(axesIn, end) : undefined
      return reach === 'exact' || reach === 'partial'
    }
    const wrong = inverse.findIndex((e, k) => !isDigits(e, this.#over[k]!.extent))
    if (wrong >= 0) this.#refuse(`its coordinates of ${this.#over[wrong]!.name} are not made of digits`)
    const isOne = (e: Expr | undefined): boolean => e?.kind === 'const' && e.value === 1
    const unused = [...extents.keys()].find((name) => !used.has(name) && !isOne(extents.get(name)))
    if (unused !== undefined) this.#refuse(`no coordinate depends on ${unused}`)
  }
}
