/**
 * Proofs about formats for all sizes and tensors: the inverse undoes the map, maps stay in range, parts are disjoint
 * and cover everything. An unproved property is not refuted: it is checked at construction.
 *
 * Arithmetic is exact. Lists are assumed to ascend from 0 to the extent that they cut.
 */
import type { Facts } from '../../analysis/integers/facts.ts'
import { GivesUp, linear, linearKey } from '../../analysis/integers/linear.ts'
import type { StoredAxis } from '../../ir/axis.ts'
import { type Expr, int, variable } from '../../ir/expr.ts'
import { mentionsAny, rewriteExpr, substitute } from '../../ir/expr-tree.ts'
import type { FormatInstance } from '../../ir/format.ts'
import { operandsOf, sourceOf } from '../../ir/queries.ts'
import { factsOf } from './format-facts.ts'
import { alternatives, type Conjunction, impossible, product } from './prove-conditions.ts'

/** Proves `inverse(map(x)) = x` for all coordinates x that satisfy the facts. `false`: not proved. */
export function provesInverse(part: FormatInstance, over: readonly StoredAxis[], facts: Facts): boolean {
  const mapped = new Map(part.order.map((name, k) => [name, part.map[k]!]))
  return over.every(({ name }, k) => {
    const back = facts.form(substitute(part.inverse[k]!, mapped))
    return linearKey(back) === linearKey(linear(variable(name)))
  })
}

/**
 * Proves `map(inverse(x)) = x` for all coordinates x on the axes: different ones map to different coordinates of the
 * tensor (over `dims`). Sorts are only assumed to be permutations, so places represent the coordinates there. `false`:
 * not proved.
 */
export function provesInjective(part: FormatInstance, dims: readonly string[]): boolean {
  const sorts = new Set(part.tables.filter((t) => t.of === 'sort').map((t) => t.name))
  const unsorted = (e: Expr): Expr =>
    rewriteExpr(e, (x) => (x.kind === 'load' && sorts.has(x.buffer) ? unsorted(x.index[0]!) : undefined))
  const places = new Map(
    part.queries.filter((q) => sourceOf(q, 'sort') !== undefined).map((q) => [q.name, operandsOf(q)[0]!]),
  )
  const back = new Map(dims.map((name, k) => [name, unsorted(part.inverse[k]!)]))
  const facts = factsOf(part.axes, [])
  return part.order.every((name, k) => {
    const again = substitute(substitute(part.map[k]!, places), back)
    return facts.provesOrder(again, variable(name)) && facts.provesOrder(variable(name), again)
  })
}

/** Proves that every component of the map is within its axis; measured extents fit anything. */
export function provesRange(part: FormatInstance, facts: Facts): boolean {
  const measured = new Set(part.measured.map((m) => m.name))
  const mapped = [
    ...part.order.map((name, k) => [part.axes.find((a) => a.name === name)!.extent, part.map[k]!] as const),
    ...part.lists.map((l) => [l.axis.extent, l.coordinate] as const),
  ]
  return mapped.every(([extent, at]) => {
    if (extent.kind === 'var' && measured.has(extent.name)) return facts.provesOrder(int(0), at)
    return !mentionsAny(extent, measured) && facts.provesWithin(at, extent)
  })
}

/** Proves `e <= bound`, over sizes, for all coordinates on the axes. */
export const provesBelow = (e: Expr, bound: Expr, axes: readonly StoredAxis[]): boolean =>
  factsOf(axes, []).provesOrder(e, bound)

/** Proves that no coordinate satisfies two of the conditions. */
export function provesDisjoint(conditions: readonly Expr[], facts: Facts): boolean {
  return attempt(() => {
    const all = conditions.map((c) => alternatives(c, true, facts))
    return all.every((a, k) => all.slice(k + 1).every((b) => none(product(a, b), facts)))
  })
}

/** Proves that every coordinate satisfies one of the conditions. */
export function provesCover(conditions: readonly Expr[], facts: Facts): boolean {
  return attempt(() =>
    none(
      conditions.map((c) => alternatives(c, false, facts)).reduce(product, [[]] as readonly Conjunction[]),
      facts,
    ),
  )
}

const none = (all: readonly Conjunction[], facts: Facts): boolean => all.every((c) => impossible(c, facts))

function attempt(proof: () => boolean): boolean {
  try {
    return proof()
  } catch (e) {
    if (e instanceof GivesUp) return false
    throw e
  }
}
