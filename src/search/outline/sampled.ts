/** Spaces that are too large to be gone through: what random walks show of them. */
import { Effort } from '../effort.ts'
import { COUNTED_VALUES, type Random, withValue } from '../points.ts'
import type { DecisionValue, OpenDecision, Point, PointSpace } from '../types.ts'
import type { Outline, OutlinedDecision } from './types.ts'

/** One way down: what was asked for, by name with its place, and what was decided. */
interface Walk {
  readonly asked: readonly OpenDecision[]
  readonly places: ReadonlyMap<string, number>
  readonly point: Point
}

/** A decision, and the walks that came to it. */
interface Met {
  readonly name: string
  readonly values: readonly DecisionValue[]
  readonly ordered: boolean
  readonly walks: readonly Walk[]
  /** Mean number of decisions before it. */
  readonly depth: number
}

/** Walks, whatever they take. */
const FEWEST = 10

/** Chance that walks show a dependence where there is none. */
const DOUBT = 1e-6

/**
 * The number of points is the mean product of the numbers of values on the way, which is without bias (Knuth, Mathematics of
 * Computation 29, 1975). Fewer than `count` where conditions are asked about many values.
 */
export function sampledOutline(space: PointSpace, count: number, random: Random): Outline {
  const walks: Walk[] = []
  const effort = Effort.ofPlaces(COUNTED_VALUES)
  while (walks.length < count && !(effort.isSpent && walks.length >= FEWEST)) {
    const one = walk(space, random)
    walks.push(one)
    for (const open of one.asked) effort.spend(open)
  }
  const met = allMet(walks)
  const products = walks.map(({ asked }) => asked.reduce((n, { values }) => n * values.length, 1))
  return {
    decisions: met.map(
      (one): OutlinedDecision => ({
        name: one.name,
        values: one.values,
        ordered: one.ordered,
        points: null,
        after: met.flatMap((before) => restriction(before, one)),
      }),
    ),
    points: products.reduce((a, b) => a + b, 0) / walks.length,
    isExact: false,
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
  return { asked, point, places: new Map(asked.map((o, k) => [o.name, k])) }
}

function allMet(walks: readonly Walk[]): readonly Met[] {
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
      const values = [...new Set(asked.flatMap((o) => o.values))]
      const { ordered } = asked[0]!
      if (ordered) values.sort((a, b) => Number(a) - Number(b))
      const depth = here.reduce((n, w) => n + w.places.get(name)!, 0) / here.length
      return { name, values, ordered, walks: here, depth }
    })
    .sort((a, b) => a.depth - b.depth)
}

/** The values of `before` after which `one` is asked for, if it is for some alone, and that is no chance. */
function restriction(before: Met, one: Met): OutlinedDecision['after'] {
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
