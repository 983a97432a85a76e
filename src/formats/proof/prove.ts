/**
 * Proofs about formats for all sizes and tensors: the inverse undoes the map, maps stay in range, parts are disjoint
 * and cover everything. An unproved property is not refuted: it is checked at construction.
 *
 * Arithmetic is exact. Lists are assumed to ascend from 0 to the extent that they cut.
 */
import type { Facts } from '../../analysis/integers/facts.ts'
import { GivesUp, linear, linearKey } from '../../analysis/integers/linear.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import { type Expr, int, variable } from '../../ir/expressions/expr.ts'
import { mentionsSome, rewriteExpr, substitute } from '../../ir/expressions/expr-tree.ts'
import type { FormatInstance } from '../../ir/formats/format.ts'
import { operandsOf, sourceOf } from '../../ir/formats/queries.ts'
import { factsOf } from './format-facts.ts'
import { alternatives, type Conjunction, isContradictory, product } from './prove-conditions.ts'

/** Proves `inverse(map(x)) = x` for all coordinates x that satisfy the facts. `false`: not proved. */
export function proveInverse(part: FormatInstance, over: readonly StoredAxis[], facts: Facts): boolean {
  const mapByAxis = new Map(part.order.map((name, k) => [name, part.map[k]!]))
  return over.every(({ name }, k) => {
    const restored = facts.form(substitute(part.inverse[k]!, mapByAxis))
    return linearKey(restored) === linearKey(linear(variable(name)))
  })
}

/**
 * Proves `map(inverse(x)) = x` for all coordinates x on the axes: different stored coordinates map to
 * different coordinates of the tensor (over `dims`). Sorts are only assumed to be permutations, so the proof
 * replaces sorted coordinates by their ranks. `false`: not proved.
 */
function proveInjective(part: FormatInstance, dims: readonly string[]): boolean {
  const sorts = new Set(part.tables.filter((t) => t.kind === 'sort').map((t) => t.name))
  const withoutSorts = (e: Expr): Expr =>
    rewriteExpr(e, (x) => (x.kind === 'load' && sorts.has(x.buffer) ? withoutSorts(x.index[0]!) : undefined))
  const sortOperands = new Map(
    part.queries.filter((q) => sourceOf(q, 'sort') !== undefined).map((q) => [q.name, operandsOf(q)[0]!]),
  )
  const inverseByDim = new Map(dims.map((name, k) => [name, withoutSorts(part.inverse[k]!)]))
  const facts = factsOf(part.axes, [])
  return part.order.every((name, k) => {
    const roundTrip = substitute(substitute(part.map[k]!, sortOperands), inverseByDim)
    return facts.provesOrder(roundTrip, variable(name)) && facts.provesOrder(variable(name), roundTrip)
  })
}

/** Proves that every component of the map is within its axis; measured extents fit anything. */
export function proveRange(part: FormatInstance, facts: Facts): boolean {
  const measured = new Set(part.measured.map((m) => m.name))
  const extentsAndCoordinates = [
    ...part.order.map((name, k) => [part.axes.find((a) => a.name === name)!.extent, part.map[k]!] as const),
    ...part.lists.map((l) => [l.axis.extent, l.coordinate] as const),
  ]
  return extentsAndCoordinates.every(([extent, coordinate]) => {
    if (extent.kind === 'var' && measured.has(extent.name)) return facts.provesOrder(int(0), coordinate)
    return !mentionsSome(extent, measured) && facts.provesWithin(coordinate, extent)
  })
}

/** Proves `e <= bound`, over sizes, for all coordinates on the axes. */
export const proveBelow = (e: Expr, bound: Expr, axes: readonly StoredAxis[]): boolean =>
  factsOf(axes, []).provesOrder(e, bound)

/** Proves that no coordinate satisfies two of the conditions. */
export function proveDisjoint(conditions: readonly Expr[], facts: Facts): boolean {
  return tryProof(() => {
    const alternativesOfConditions = conditions.map((c) => alternatives(c, true, facts))
    return alternativesOfConditions.every((a, k) =>
      alternativesOfConditions.slice(k + 1).every((b) => allContradictory(product(a, b), facts)),
    )
  })
}

/** Proves that every coordinate satisfies one of the conditions. */
export function proveCover(conditions: readonly Expr[], facts: Facts): boolean {
  return tryProof(() =>
    allContradictory(
      conditions.map((c) => alternatives(c, false, facts)).reduce(product, [[]] as readonly Conjunction[]),
      facts,
    ),
  )
}

const allContradictory = (conjunctions: readonly Conjunction[], facts: Facts): boolean =>
  conjunctions.every((c) => isContradictory(c, facts))

function tryProof(proof: () => boolean): boolean {
  try {
    return proof()
  } catch (e) {
    if (e instanceof GivesUp) return false
    throw e
  }
}

/** Properties proved of a format for every tensor, which need not be checked on data. */
export interface Proved {
  /** The inverse undoes the map, in exact integers, for coordinates within their extents. */
  readonly inverse: boolean
  /** The map stays within the extents of the axes. */
  readonly range: boolean
}

const UNPROVED: Proved = { inverse: false, range: false }
const cache = new WeakMap<FormatInstance, Proved>()

/**
 * The proved properties of an instance over these axes, cached. Lists are given with the data, so nothing is assumed
 * about them.
 */
export function provedOf(instance: FormatInstance, over: readonly StoredAxis[]): Proved {
  const cached = cache.get(instance)
  if (cached) return cached
  const lists =
    instance.tables.some((t) => t.kind === 'list') ||
    instance.queries.some((q) => sourceOf(q, 'list') !== undefined)
  const facts = lists ? null : factsOf(over, instance.queries, instance)
  const proved = facts
    ? { inverse: proveInverse(instance, over, facts), range: proveRange(instance, facts) }
    : UNPROVED
  cache.set(instance, proved)
  return proved
}

const injectiveCache = new WeakMap<FormatInstance, boolean>()

/**
 * True if different coordinates on the axes of an instance over `dims` provably map to different ones of the tensor.
 */
export function isInjective(instance: FormatInstance, dims: readonly string[]): boolean {
  const cached = injectiveCache.get(instance)
  if (cached !== undefined) return cached
  const proved = proveInjective(instance, dims)
  injectiveCache.set(instance, proved)
  return proved
}
