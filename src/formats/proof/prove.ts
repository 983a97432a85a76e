/**
 * Proofs about formats for all sizes and tensors: the inverse undoes the map, maps stay in range, parts are disjoint
 * and cover everything. An unproved property is not refuted: it is checked at construction.
 *
 * Arithmetic is exact. Lists are assumed to ascend from 0 to the extent that they cut.
 */

import { Facts } from '../../analysis/integers/facts.ts'
import { GivesUp, linear, linearKey, shift } from '../../analysis/integers/linear.ts'
import { placeKey } from '../../analysis/integers/normal-forms.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import { type Expr, int, variable } from '../../ir/expressions/expr.ts'
import { freeVars, mentionsSome, rewriteExpr, substitute } from '../../ir/expressions/expr-tree.ts'
import type { FormatInstance, Proved } from '../../ir/formats/format.ts'
import { segmentsOf } from '../../ir/formats/format-tables.ts'
import { extentOf } from '../../ir/formats/list-extents.ts'
import { boundsOfQuery, declarationOf, operandsOf, type Query, sourceOf } from '../../ir/formats/queries.ts'
import { getOrAdd } from '../../ir/memoize.ts'
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

export const proveBelow = (e: Expr, bound: Expr, axes: readonly StoredAxis[]): boolean =>
  factsOf(axes, []).provesOrder(e, bound)

export function proveDisjoint(conditions: readonly Expr[], facts: Facts): boolean {
  return tryProof(() => {
    const alternativesOfConditions = conditions.map((c) => alternatives(c, true, facts))
    return alternativesOfConditions.every((a, k) =>
      alternativesOfConditions.slice(k + 1).every((b) => allContradictory(product(a, b), facts)),
    )
  })
}

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

const UNPROVED: Proved = { inverse: false, range: false }
const cache = new WeakMap<FormatInstance, Proved>()

/** Cached. Lists are given with the data, so nothing is assumed about them. */
export const provedOf = (instance: FormatInstance, over: readonly StoredAxis[]): Proved =>
  getOrAdd(cache, instance, () => {
    const lists =
      instance.tables.some((t) => t.kind === 'list') ||
      instance.queries.some((q) => sourceOf(q, 'list') !== undefined)
    if (lists) return UNPROVED
    const facts = factsOf(over, instance.queries, instance)
    return { inverse: proveInverse(instance, over, facts), range: proveRange(instance, facts) }
  })

const injectiveCache = new WeakMap<FormatInstance, boolean>()

/** True if different coordinates on the axes of an instance provably map to different ones of the tensor. */
export function isInjective(instance: FormatInstance, dims: readonly string[]): boolean {
  return getOrAdd(injectiveCache, instance, () => proveInjective(instance, dims))
}

/** Facts about coordinates: they are within their extents, and exist, so extents are at least 1. */
export function factsOf(
  over: readonly StoredAxis[],
  queries: readonly Query[],
  part?: FormatInstance,
): Facts {
  const facts = new Facts()
  const extents = new Map(over.map((a) => [a.name, a.extent]))
  for (const e of [...extents.values(), ...(part?.axes ?? []).map((a) => a.extent)])
    for (const v of freeVars(e)) facts.atLeast(variable(v), 0)
  for (const [name, extent] of extents) {
    if (extent.kind === 'var') facts.atLeast(extent, 1)
    facts.coordinate(variable(name), extent)
  }
  for (const q of queries) addQueryFacts(q, queries, facts, extents, part)
  // Longer lists are rejected when they are assembled.
  for (const { axis, position } of part?.lists ?? [])
    if (position !== null) facts.isBelow(variable(position), axis.width)
  const lastCoordinates = [...extents.values()].map((e) => shift(facts.form(e), -1))
  const assumed = facts.assuming(lastCoordinates.filter((f) => f.terms.size > 0))
  if (part) addTableFacts(part, assumed)
  return assumed
}

function addQueryFacts(
  q: Query,
  queries: readonly Query[],
  facts: Facts,
  extents: ReadonlyMap<string, Expr>,
  part: FormatInstance | undefined,
): void {
  const name = variable(q.name)
  const { least, end } = boundsOfQuery(q, {
    distinctTuples(of) {
      // Upper bound of distinct values: for an expression of one coordinate, the number of that coordinate's values.
      const [dim, ...otherDims] = new Set(of.flatMap((e) => [...freeVars(e)]))
      return otherDims.length === 0 ? extents.get(dim!) : undefined
    },
    list(list, of) {
      const segments = variable(segmentsOf(list))
      facts.atLeast(segments, 0)
      // Lists end with the extent of coordinates; there is no segment beyond.
      if (extentOf(of, extents, { queries, sorts: part?.sorts ?? [] }))
        return { least: int(0), end: segments }
      return facts.nonNegative(of) ? { least: int(0) } : {}
    },
    sort(place) {
      const end = part?.sorts.find((s) => s.place === place)?.extent
      return end ? { least: int(0), end } : {}
    },
  })
  if (end) facts.isBelow(name, end)
  if (least?.kind === 'const') facts.atLeast(name, least.value)
}

/** The element of a table at a coordinate's place is that coordinate; a segment's boundaries enclose its values. */
function addTableFacts(part: FormatInstance, facts: Facts): void {
  for (const t of part.tables) {
    const { kind: of } = t
    if (of === 'positions') continue
    const source = of === 'sort' ? part.sorts.find((s) => s.at === t.source)?.place : t.source
    const sourceQueries = part.queries.filter((q) => source !== undefined && sourceOf(q, of) === source)
    const operandsByPosition = (inverse: 'places' | 'found') =>
      sourceQueries
        .filter((q) => declarationOf(q).inverse === inverse)
        .flatMap((q) => operandsOf(q).map((of) => [linearKey(linear(variable(q.name))), of] as const))
    const places = operandsByPosition('places').filter(([, of]) => facts.provesWithin(of, t.fill))
    const found = operandsByPosition('found')
    facts.table(t.name, { fill: t.fill, places: new Map(places), found: new Map(found) })
  }
  for (const { axis, under, coordinate, position } of part.lists) {
    if (position === null || !facts.provesWithin(coordinate, axis.extent)) continue
    const index = [...under.map((a) => part.map[part.order.indexOf(a)]!), variable(position)]
    const places = new Map([[placeKey(index.map((e) => facts.form(e))), coordinate]])
    facts.table(axis.name, { fill: axis.extent, places, found: new Map() })
  }
}
