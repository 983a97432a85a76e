/** Spaces that are too large to be gone through: what random walks show of them. */
import { Random as Generator } from '../../run/bind/random-tensors.ts'
import { Effort } from '../effort.ts'
import { foundIn } from '../point-walks.ts'
import { COUNT_LIMIT, type Random, withValue } from '../points.ts'
import type { DecisionValue, OpenDecision, Point, PointSpace } from '../types.ts'
import type { Outline, OutlinedDecision } from './types.ts'

/** One random walk: the decisions by name with their depth, and the values. */
interface Walk {
  readonly asked: readonly OpenDecision[]
  readonly places: ReadonlyMap<string, number>
  readonly point: Point
  /** True if the walk reached a point. */
  readonly isWhole: boolean
}

/** A decision, and the walks that came to it. */
interface Met {
  readonly name: string
  readonly values: readonly DecisionValue[]
  readonly unsure: readonly DecisionValue[]
  readonly ordered: boolean
  readonly walks: readonly Walk[]
  /** Mean number of decisions before it. */
  readonly depth: number
}

/** Walks down a space that is too large to be gone through. */
const WALKS = 500
/** Walks, whatever they take. */
const FEWEST = 10

/** Ways to a value from which points with it are looked for. */
const TRIES = 3
/** Values checked per missing one; in total, as many as for the walks. */
const LOOKED = 2000

/** Chance that walks show a dependence where there is none. */
const DOUBT = 1e-6

/**
 * The number of points is the mean product of the numbers of values on the way, which is without bias (Knuth, Mathematics of
 * Computation 29, 1975).
 */
export function sampledOutline(space: PointSpace, random: Random): Outline {
  const walks = [...walksDown(space, random)]
  const reach = new Reach(space)
  const met = allMet(walks, (w, name, value) => reach.leads(w, name, value))
  return {
    decisions: met.map(
      (one): OutlinedDecision => ({
        name: one.name,
        values: one.values,
        unconfirmed: one.unsure,
        ordered: one.ordered,
        points: null,
        dependsOn: met.flatMap((before) => restriction(before, one)),
      }),
    ),
    points: meanProduct(walks),
    isExact: false,
  }
}

/** The same number of points, by the walks alone. */
export const estimatedPoints = (space: PointSpace, random: () => number = seeded()): number =>
  meanProduct(walksDown(space, random))

/** The same samples each time. */
export function seeded(): Random {
  const generator = new Generator(1)
  return () => generator.next()
}

/** Of so many of the walks that estimating takes about as long as counting until it stops. */
function meanProduct(walks: Iterable<Walk>): number {
  const effort = new Effort(COUNT_LIMIT)
  let [sum, count] = [0, 0]
  for (const { asked } of walks) {
    sum += asked.reduce((n, { values }) => n * values.length, 1)
    count++
    for (const open of asked) effort.spend(open)
    if (effort.isSpent && count >= FEWEST) break
  }
  return sum / count
}

/** Fewer than `WALKS` where conditions are evaluated for many values. */
function* walksDown(space: PointSpace, random: Random): Iterable<Walk> {
  const effort = Effort.ofPlaces(COUNT_LIMIT)
  for (let k = 0; k < WALKS && !(effort.isSpent && k >= FEWEST); k++) {
    const one = walk(space, random)
    yield one
    for (const open of one.asked) effort.spend(open)
  }
}

function walk(space: PointSpace, random: Random): Walk {
  const asked: OpenDecision[] = []
  let point: Point = {}
  for (let open = space.next(point); open; open = space.next(point)) {
    asked.push(open)
    const { name, values } = open
    if (values.length === 0) break
    point = withValue(point, name, values[Math.floor(random() * values.length)]!)
  }
  return {
    asked,
    point,
    isWhole: asked.every((o) => o.values.length > 0),
    places: new Map(asked.map((o, k) => [o.name, k])),
  }
}

/** Looks for points off the walks, with bounded effort. */
class Reach {
  readonly #space: PointSpace
  readonly #all = Effort.ofPlaces(COUNT_LIMIT)

  constructor(space: PointSpace) {
    this.#space = space
  }

  leads({ asked, places, point }: Walk, name: string, value: DecisionValue): boolean {
    if (this.#all.isSpent) return false
    const before = asked.slice(0, places.get(name)!).map((o) => [o.name, point[o.name]!] as const)
    const own = new Effort(LOOKED)
    const next = (partial: Point): OpenDecision | null => {
      const open = this.#space.next(partial)
      for (const effort of [own, this.#all]) effort.spend(open)
      return open
    }
    const from = { ...Object.fromEntries(before), [name]: value }
    for (const found of foundIn({ name: this.#space.name, next }, from)) {
      if (found) return true
      if (own.isSpent || this.#all.isSpent) return false
    }
    return false
  }
}

/** @param leads whether a walk goes on to a point where a decision is another value, as far as that can be told */
function allMet(
  walks: readonly Walk[],
  leads: (walk: Walk, name: string, value: DecisionValue) => boolean,
): readonly Met[] {
  const by = new Map<string, Walk[]>()
  for (const w of walks)
    for (const { name } of w.asked) {
      const list = by.get(name)
      if (list) list.push(w)
      else by.set(name, [w])
    }
  return [...by]
    .map(([name, here]): Met => {
      const asked = here.map((w) => w.asked[w.places.get(name)!]!)
      const offered = new Map<DecisionValue, Walk[]>()
      for (const [k, { values }] of asked.entries())
        for (const v of values) {
          const list = offered.get(v)
          if (list) list.push(here[k]!)
          else offered.set(v, [here[k]!])
        }
      const { ordered } = asked[0]!
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

/** The values of `before` after which `one` is asked for, if it is for some alone, and that is no chance. */
function restriction(before: Met, one: Met): OutlinedDecision['dependsOn'] {
  const { name } = before
  const isBefore = ({ places }: Walk): boolean => (places.get(name) ?? Infinity) < places.get(one.name)!
  if (before === one || !one.walks.every(isBefore)) return []
  const seen = new Set(one.walks.map((w) => w.point[name]!))
  const others = before.values.filter((v) => !seen.has(v))
  if (others.length === 0) return []
  const taken = before.walks.filter((w) => seen.has(w.point[name]!)).length
  const never = 1 - one.walks.length / taken
  const isSure = (v: DecisionValue): boolean =>
    never ** before.walks.filter((w) => w.point[name] === v).length < DOUBT
  return others.every(isSure) ? [{ name, values: before.values.filter((v) => seen.has(v)) }] : []
}
