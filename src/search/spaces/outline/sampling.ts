/** Outline of spaces that are too large to enumerate, estimated from random walks. */

import { expectArgument, expectOptions } from '../../../ast/diagnostics/expect-argument.ts'
import { getOrAdd, groupBy } from '../../../ir/memoize.ts'
import { Random as Generator } from '../../../run/bind/sources/random-tensors.ts'
import type { DecisionValue, OpenDecision, Point, PointSpace } from '../../types.ts'
import { Effort } from '../counter.ts'
import { walkPoints } from '../point-walks.ts'
import { COUNT_LIMIT, type Random, withValue } from '../points.ts'
import { type Outline, type OutlinedDecision, wholeOutline } from './enumeration.ts'

/** One random walk: the decisions by name with their depth, and the values. */
interface Walk {
  readonly decisions: readonly OpenDecision[]
  readonly places: ReadonlyMap<string, number>
  readonly point: Point
  /** True if the walk reached a point. */
  readonly isWhole: boolean
}

/** A decision, with the walks that reached it. */
interface VisitedDecision {
  readonly name: string
  readonly values: readonly DecisionValue[]
  readonly unsure: readonly DecisionValue[]
  readonly ordered: boolean
  readonly walks: readonly Walk[]
  /** Mean number of decisions before it. */
  readonly depth: number
}

/** Number of walks down a space that is too large to enumerate. */
const WALKS = 500
/** Minimum number of walks, regardless of their effort. */
const MIN_WALKS = 10

/** Number of partial points from which a point with a given value is searched. */
const TRIES = 3
/** Values checked per missing one; in total, as many as for the walks. */
const SEARCH_EFFORT = 2000

/** Probability at which an apparent dependency counts as chance. */
const SIGNIFICANCE = 1e-6

/**
 * The number of points is estimated by the mean product of the numbers of values along a walk, which is unbiased
 * (Knuth, Mathematics of Computation 29, 1975).
 */
function sampledOutline(space: PointSpace, random: Random): Outline {
  const walks = [...walksDown(space, random)]
  const visited = visitedDecisions(walks, reachIn(space))
  return {
    decisions: visited.map(
      (visit): OutlinedDecision => ({
        name: visit.name,
        values: visit.values,
        unconfirmed: visit.unsure,
        ordered: visit.ordered,
        points: null,
        dependsOn: visited.flatMap((before) => restriction(before, visit)),
      }),
    ),
    points: meanProduct(walks),
    isExact: false,
  }
}

/** The estimated number of points, from the walks alone. */
export const estimatePoints = (space: PointSpace, random: () => number = seeded()): number =>
  meanProduct(walksDown(space, random))

function seeded(): Random {
  const generator = new Generator(1)
  return () => generator.next()
}

/** Mean over as many walks as take about the effort of enumeration up to its limit. */
function meanProduct(walks: Iterable<Walk>): number {
  const effort = new Effort(COUNT_LIMIT)
  let [sum, count] = [0, 0]
  for (const { decisions } of walks) {
    sum += decisions.reduce((n, { values }) => n * values.length, 1)
    count++
    for (const open of decisions) effort.spend(open)
    if (effort.isSpent && count >= MIN_WALKS) break
  }
  return sum / count
}

/** Random walks; fewer than `WALKS` if conditions are evaluated for many values. */
function* walksDown(space: PointSpace, random: Random): Iterable<Walk> {
  const effort = Effort.ofPlaces(COUNT_LIMIT)
  for (let k = 0; k < WALKS && !(effort.isSpent && k >= MIN_WALKS); k++) {
    const one = walk(space, random)
    yield one
    for (const open of one.decisions) effort.spend(open)
  }
}

function walk(space: PointSpace, random: Random): Walk {
  const decisions: OpenDecision[] = []
  let point: Point = {}
  for (let open = space.next(point); open; open = space.next(point)) {
    decisions.push(open)
    const { name, values } = open
    if (values.length === 0) break
    point = withValue(point, name, values[Math.floor(random() * values.length)]!)
  }
  return {
    decisions,
    point,
    isWhole: decisions.every((o) => o.values.length > 0),
    places: new Map(decisions.map((o, k) => [o.name, k])),
  }
}

/** Looks for points off the walks, with bounded effort. */
function reachIn(space: PointSpace): (walk: Walk, name: string, value: DecisionValue) => boolean {
  const all = Effort.ofPlaces(COUNT_LIMIT)
  return ({ decisions, places, point }, name, value) => {
    if (all.isSpent) return false
    const before = decisions.slice(0, places.get(name)!).map((o) => [o.name, point[o.name]!] as const)
    const own = new Effort(SEARCH_EFFORT)
    const next = (partial: Point): OpenDecision | null => {
      const open = space.next(partial)
      for (const effort of [own, all]) effort.spend(open)
      return open
    }
    const from = { ...Object.fromEntries(before), [name]: value }
    for (const found of walkPoints({ name: space.name, next }, from)) {
      if (found) return true
      if (own.isSpent || all.isSpent) return false
    }
    return false
  }
}

/** @param leads - True if the walk, with another value of a decision, is known to lead to a point */
function visitedDecisions(
  walks: readonly Walk[],
  leads: (walk: Walk, name: string, value: DecisionValue) => boolean,
): readonly VisitedDecision[] {
  const visits = walks.flatMap((walk) => walk.decisions.map((open) => ({ open, walk })))
  return [...groupBy(visits, ({ open }) => open.name)]
    .map(([name, group]): VisitedDecision => {
      const here = group.map(({ walk }) => walk)
      const offered = new Map<DecisionValue, Walk[]>()
      for (const { open, walk } of group)
        for (const v of open.values) getOrAdd(offered, v, () => []).push(walk)
      const { ordered } = group[0]!.open
      const all = [...offered.keys()]
      if (ordered) all.sort((a, b) => Number(a) - Number(b))
      const inPoints = new Set(here.flatMap((w) => (w.isWhole ? [w.point[name]!] : [])))
      const isKnown = (v: DecisionValue): boolean =>
        inPoints.has(v) ||
        offered
          .get(v)!
          .slice(0, TRIES)
          .some((w) => leads(w, name, v))
      const values = all.filter(isKnown)
      const unsure = all.filter((v) => !values.includes(v))
      const depth = here.reduce((n, w) => n + w.places.get(name)!, 0) / here.length
      return { name, values, unsure, ordered, walks: here, depth }
    })
    .sort((a, b) => a.depth - b.depth)
}

/** The values of `before` after which a decision occurs, if it occurs after some only and this is significant. */
function restriction(before: VisitedDecision, one: VisitedDecision): OutlinedDecision['dependsOn'] {
  const { name } = before
  const isBefore = ({ places }: Walk): boolean => (places.get(name) ?? Infinity) < places.get(one.name)!
  if (before === one || !one.walks.every(isBefore)) return []
  const seen = new Set(one.walks.map((w) => w.point[name]!))
  const others = before.values.filter((v) => !seen.has(v))
  if (others.length === 0) return []
  const taken = before.walks.filter((w) => seen.has(w.point[name]!)).length
  const never = 1 - one.walks.length / taken
  const isSure = (v: DecisionValue): boolean =>
    never ** before.walks.filter((w) => w.point[name] === v).length < SIGNIFICANCE
  return others.every(isSure) ? [{ name, values: before.values.filter((v) => seen.has(v)) }] : []
}

// Outline of a space: its decisions with their values and dependencies, and the number of points.

export type { Outline, OutlinedDecision } from './enumeration.ts'

export interface OutlineOptions {
  /** Number of decisions up to which the space is enumerated; default `COUNT_LIMIT`, or 2,000 without `remainderKey`. */
  readonly limit?: number | undefined
  /** Generator for samples; default: a fixed seed. */
  readonly random?: Random | undefined
}

/** Limit for spaces without `remainderKey`, which can be enumerated only if they are small. */
const SMALL_LIMIT = 2000

/**
 * Decisions of a space. Large spaces are sampled: rare decisions and values may be missing, and the number of points is an
 * estimate.
 * @throws SptError as `space.next`
 */
export function outline(space: PointSpace, options: OutlineOptions = {}): Outline {
  expectOptions('outline', options, ['limit', 'random'])
  const { limit = space.remainderKey ? COUNT_LIMIT : SMALL_LIMIT, random } = options
  expectArgument(Number.isSafeInteger(limit) && limit > 0, 'limit', limit, 'a number of decisions: 10000')
  const result = wholeOutline(space, limit) ?? sampledOutline(space, random ?? seeded())
  return { ...result, decisions: result.decisions.map((d) => withoutImplied(d, result.decisions)) }
}

/** Removes dependencies that follow from other dependencies of the decision. */
function withoutImplied(d: OutlinedDecision, all: readonly OutlinedDecision[]): OutlinedDecision {
  const dependencies = new Map(all.map((o) => [o.name, o.dependsOn]))
  const isImplied = ({ name, values }: OutlinedDecision['dependsOn'][number]): boolean =>
    d.dependsOn.some((a) =>
      dependencies.get(a.name)?.some((b) => b.name === name && b.values.length <= values.length),
    )
  return { ...d, dependsOn: d.dependsOn.filter((a) => !isImplied(a)) }
}
