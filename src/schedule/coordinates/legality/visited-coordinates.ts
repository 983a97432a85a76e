/**
 * Coordinates that iterations visit, before and after a format. Iterations over some axes of a tree visit the stored
 * coordinates on the *heads* (the paths from a root to a last axis that is not dense), combined with all coordinates on
 * the *tail* (the remaining dense axes). A format preserves the visits if heads and tails correspond: no visited
 * coordinate may be skipped, no other visited, and none visited more often than before.
 */

import { type Determined, determined } from '../../../analysis/dependence/coordinate-injectivity.ts'
import { dependsOn } from '../../../analysis/dependence/query-dependence.ts'
import type { Axis, StoredAxis } from '../../../ir/coordinates/axis.ts'
import { chainTo, isDense, isPadded, repeatsCoordinates, storesGaps } from '../../../ir/coordinates/axis.ts'
import { loadsOfLists } from '../../../ir/coordinates/derived-names.ts'
import type { IterKind } from '../../../ir/coordinates/stage1.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import { freeVars } from '../../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import { type FormatInstance, fullAxes, type Instance } from '../../../ir/formats/format.ts'
import { childrenOf, type PartTree, selectorsOf } from '../../../ir/formats/part-tree.ts'

export interface Visits {
  /** True if visited coordinates may be skipped. */
  readonly misses: boolean
  /** True if other coordinates may be visited (padding). */
  readonly adds: boolean
  /** True if coordinates may be visited a different number of times. */
  readonly repeats: boolean
}

/** Compares iterations over the part's axes `fresh` with those over `old`; both contain parents of their axes. */
export function visits(
  part: FormatInstance,
  instance: Instance,
  old: ReadonlySet<string>,
  fresh: ReadonlySet<string>,
): Visits {
  const { over } = instance
  const dims = over.map((a) => a.name)
  const whole = dims.every((d) => old.has(d))
  const before = shapeOf(over, old)
  const after = shapeOf(part.axes, fresh)
  const from = (axis: string): ReadonlySet<string> =>
    dependsOn(part.map[part.order.indexOf(axis)]!, part.queries, dims)
  const back = (dim: string): Expr => part.inverse[dims.indexOf(dim)]!
  const within = (names: Iterable<string>, head: ReadonlySet<string>): boolean =>
    [...names].every((n) => head.has(n))
  // A head visits the coordinates of stored elements. Heads that determine each other visit the same coordinates.
  const told = after.heads.map((h) =>
    before.heads.find((o) =>
      within(
        [...h].flatMap((a) => [...from(a)]),
        o,
      ),
    ),
  )
  const own = part.axes.filter((a) => fresh.has(a.name))
  const backFrom = (dim: string): readonly string[] =>
    [...freeVars(back(dim))].filter((v) => part.order.includes(v))
  // Full axes under a head follow from its elements, unless they determine coordinates of dimensions outside of `old`.
  const elsewhere = new Set(dims.filter((d) => !old.has(d)).flatMap(backFrom))
  const filled = new Set(
    fullAxes(part).flatMap((a) => (fresh.has(a.name) && !elsewhere.has(a.name) ? [a.name] : [])),
  )
  const telling = before.heads.map((o) =>
    after.heads.find((h) => within([...o].flatMap(backFrom), new Set([...h, ...filled]))),
  )
  const spread = [...old].filter((d) => before.tail.has(d) || backFrom(d).some((v) => filled.has(v)))
  const asked = whole ? dimensionsAsked(instance) : []
  return {
    misses:
      before.ragged ||
      told.some((o) => o === undefined) ||
      // A list contains stored coordinates only.
      [...before.tail].some((d) => loadsOfLists(back(d), part.lists).length > 0) ||
      [...asked].some((d) => before.tail.has(d)) ||
      (part.where !== null &&
        before.tail.size > 0 &&
        [...after.tail].some((a) => !isDimension(part, a, over))),
    adds: after.ragged || telling.some((h) => h === undefined) || own.some(isPadded),
    repeats:
      after.heads.some((h) => !telling.includes(h)) ||
      (!whole && [...own, ...over.filter((a) => old.has(a.name))].some(repeatsCoordinates)) ||
      !tellsApart(spread.map(back), [...after.tail], part),
  }
}

interface Shape {
  readonly heads: readonly ReadonlySet<string>[]
  readonly tail: ReadonlySet<string>
  /** True if a head ends with an axis that has all coordinates up to a length which depends on the stored elements. */
  readonly ragged: boolean
}

function shapeOf(axes: readonly StoredAxis[], names: ReadonlySet<string>): Shape {
  const byName = new Map<string, Axis>(axes.map((a) => [a.name, a]))
  const chains = [...names].map((name) => chainTo(byName, name))
  const last = chains.filter((c) => !isDense(byName.get(c.at(-1)!)))
  const heads = last.filter(
    (c) => !last.some((d) => d.length > c.length && d[c.length - 1] === c[c.length - 1]),
  )
  const taken = new Set(heads.flat())
  return {
    heads: heads.map((c) => new Set(c)),
    tail: new Set([...names].filter((n) => !taken.has(n))),
    ragged: heads.some((c) => storesGaps(byName.get(c.at(-1)!))),
  }
}

const known = new WeakMap<Instance, ReadonlySet<string>>()

function dimensionsAsked(instance: Instance): ReadonlySet<string> {
  const before = known.get(instance)
  if (before) return before
  const dims = instance.over.map((a) => a.name)
  const asked = new Set(askedOf(instance.tree, dims))
  known.set(instance, asked)
  return asked
}

function askedOf(tree: PartTree, dims: readonly string[]): string[] {
  if (tree.kind === 'leaf') return []
  return [
    ...selectorsOf(tree).flatMap((e) => [...dependsOn(e, tree.queries, dims)]),
    ...childrenOf(tree).flatMap((c) => askedOf(c, dims)),
  ]
}

function isDimension(part: FormatInstance, name: string, over: readonly StoredAxis[]): boolean {
  const from = part.map[part.order.indexOf(name)]!
  const axis = part.axes.find((a) => a.name === name)!
  return from.kind === 'var' && over.some((a) => a.name === from.name && sameExpr(a.extent, axis.extent))
}

/**
 * Returns whether different coordinates on the dense axes `names` have different old coordinates, with all other axes
 * fixed.
 */
function tellsApart(coordinates: readonly Expr[], names: readonly string[], part: FormatInstance): boolean {
  const axes = new Map<string, Axis>(part.axes.map((a) => [a.name, a]))
  const permutations = new Set(part.tables.filter((t) => t.kind === 'sort').map((t) => t.name))
  let open = names
  while (open.length > 0) {
    const kind: IterKind = 'R'
    const around = open.map((name) => ({
      iter: { name, axis: name, kind },
      coords: [{ name, axis: axes.get(name)! }],
    }))
    const at = {
      buffer: '',
      index: coordinates,
      mode: 'read',
      reducer: null,
      around,
      span: undefined,
      order: 0,
    } as const
    const found: Determined = determined(at, [], axes, { permutations, lists: new Map(), placed: new Set() })
    const left = open.filter((name) => !found.has(name))
    if (left.length === open.length) return false
    open = left
  }
  return true
}
