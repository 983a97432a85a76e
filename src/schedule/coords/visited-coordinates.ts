/**
 * What iterations visit, before and after a format. Over some axes of a tree they visit the stored coordinates on
 * the *heads*, the ways from a root to a last axis that is not dense, together with all coordinates on the dense axes left, the
 * *tail*. A format keeps that exactly if heads and tails stand for each other: nothing that was visited may be passed over,
 * nothing else be visited, and nothing more often than before.
 */

import { type Determined, determined } from '../../analysis/coordinate-injectivity.ts'
import { dependsOn } from '../../analysis/query-dependence.ts'
import { type Axis, chainTo, isDense, isPadded, isRagged, repeats, type StoredAxis } from '../../ir/axis.ts'
import { loadsOfLists } from '../../ir/coordinate-lists.ts'
import type { Expr } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import { type FormatInstance, filledAxes, type Instance } from '../../ir/format.ts'
import { childrenOf, decidingIn, type PartTree } from '../../ir/part-tree.ts'
import type { IterKind } from '../../ir/stage1.ts'
import { sameExpr } from '../../ir/structural-equality.ts'

export interface Visits {
  /** Coordinates that were visited may be passed over. */
  readonly misses: boolean
  /** Others may be visited: padding. */
  readonly adds: boolean
  /** Some may be visited another number of times. */
  readonly repeats: boolean
}

/** How the steps over `fresh`, axes of a part, differ from those over `old` that they stand for; both have their parents. */
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
  // A head's coordinates are those of stored elements: they are the same ones where they follow from each other.
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
  // What stands under a head in full follows from its elements, unless it says where the dimensions left out are.
  const elsewhere = new Set(dims.filter((d) => !old.has(d)).flatMap(backFrom))
  const filled = new Set(
    filledAxes(part).flatMap((a) => (fresh.has(a.name) && !elsewhere.has(a.name) ? [a.name] : [])),
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
      // A list holds what is stored.
      [...before.tail].some((d) => loadsOfLists(back(d), part.lists).length > 0) ||
      [...asked].some((d) => before.tail.has(d)) ||
      (part.where !== null &&
        before.tail.size > 0 &&
        [...after.tail].some((a) => !isDimension(part, a, over))),
    adds: after.ragged || telling.some((h) => h === undefined) || own.some(isPadded),
    repeats:
      after.heads.some((h) => !telling.includes(h)) ||
      (!whole && [...own, ...over.filter((a) => old.has(a.name))].some(repeats)) ||
      !tellsApart(spread.map(back), [...after.tail], part),
  }
}

interface Shape {
  readonly heads: readonly ReadonlySet<string>[]
  readonly tail: ReadonlySet<string>
  /** A head goes on with an axis whose length follows from what is stored, and that has all coordinates up to it. */
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
    ragged: heads.some((c) => isRagged(byName.get(c.at(-1)!))),
  }
}

const known = new WeakMap<Instance, ReadonlySet<string>>()

/** Dimensions that decide which part of several an element goes to: each part is asked about. */
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
    ...decidingIn(tree).flatMap((e) => [...dependsOn(e, tree.queries, dims)]),
    ...childrenOf(tree).flatMap((c) => askedOf(c, dims)),
  ]
}

/** Whether an axis has the coordinates of a dimension as they are. */
function isDimension(part: FormatInstance, name: string, over: readonly StoredAxis[]): boolean {
  const from = part.map[part.order.indexOf(name)]!
  const axis = part.axes.find((a) => a.name === name)!
  return from.kind === 'var' && over.some((a) => a.name === from.name && sameExpr(a.extent, axis.extent))
}

/** Whether different coordinates on dense axes go to different old ones, the axes that are not named being given. */
function tellsApart(coordinates: readonly Expr[], names: readonly string[], part: FormatInstance): boolean {
  const axes = new Map<string, Axis>(part.axes.map((a) => [a.name, a]))
  const permutations = new Set(part.tables.filter((t) => t.of === 'sort').map((t) => t.name))
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
