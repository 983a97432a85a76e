/**
 * Points of spaces: gone through, counted, drawn, changed and checked, for any `PointSpace`. Nothing here takes longer
 * than its limit says, however many points there are.
 */
import { fail } from '../ast/diagnostic.ts'
import { expectArgument, isRecord } from '../ast/expect-argument.ts'
import { refuseOthers } from '../elaborate/index.ts'
import { Counter, type PointCount, withValue } from './counter.ts'
import { effortOf } from './effort.ts'
import { shuffled } from './shuffled.ts'
import type { DecisionValue, OpenDecision, Point, PointSpace } from './types.ts'

export { type PointCount, withValue } from './counter.ts'

/** Uniform in [0, 1). */
export type Random = () => number

/** Values of decisions that counting looks at before it gives up. */
export const COUNTED_VALUES = 20_000
/** Points of a space that can be gone through without saying when to end. */
export const LISTED_POINTS = 100_000

/** @throws SptError `api/argument` */
function checkSpace(space: PointSpace): void {
  expectArgument(typeof space?.next === 'function', 'space', space, 'a space of points')
}

/** @throws SptError `api/argument` */
function checkLimit(limit: number): void {
  const holds = limit >= 1 && (Number.isSafeInteger(limit) || limit === Number.POSITIVE_INFINITY)
  expectArgument(holds, 'the limit', limit, 'an integer from 1 on')
}

/** Whether two points decide the same alike: as keys of maps and sets. */
export const pointKey = (point: Point): string => JSON.stringify(Object.entries(point))

/** Every point, in the order of the values, found as they are asked for. */
export function* points(space: PointSpace, from: Point = {}): Generator<Point> {
  const open = space.next(from)
  if (!open) yield from
  else for (const value of open.values) yield* points(space, withValue(from, open.name, value))
}

/**
 * All points, where there are no more than `limit` (100,000).
 * @throws SptError `space/too-many-points`
 */
export function listed(space: PointSpace, limit: number = LISTED_POINTS): readonly Point[] {
  checkSpace(space)
  checkLimit(limit)
  const out: Point[] = []
  for (const point of points(space)) {
    if (out.length >= limit)
      fail({
        code: 'space/too-many-points',
        message: `${space.name} has more than ${limit} points`,
        expected: 'a space that can be gone through, or a larger limit',
        hint: 'draw some of them, or search with a strategy',
      })
    out.push(point)
  }
  return out
}

/**
 * How many points there are. Where a space says what the rest of it depends on (`rest`), equal rests are counted once.
 * @param limit values of decisions to look at, after which the points found so far are told
 */
export function count(space: PointSpace, limit: number = COUNTED_VALUES, from: Point = {}): PointCount {
  checkSpace(space)
  checkLimit(limit)
  const counter = new Counter(space, limit)
  const { points, isExact } = counter.below(counter.node(from), from)
  return { points, isExact }
}

const counters = new WeakMap<PointSpace, Counter | null>()

/** `null`: the space is too large to be counted. */
function counterOf(space: PointSpace): Counter | null {
  const known = counters.get(space)
  if (known !== undefined) return known
  const counter = new Counter(space, COUNTED_VALUES)
  const usable = counter.below(counter.node({}), {}).isExact ? counter : null
  counters.set(space, usable)
  return usable
}

/**
 * A point at random, `null` where there is none. Uniform over all points where they can be counted; otherwise each decision is
 * uniform over its values, and dead ends are gone back from.
 */
export function draw(space: PointSpace, random: Random): Point | null {
  checkSpace(space)
  expectArgument(typeof random === 'function', 'random', random, 'a function: Math.random')
  const counter = space.rest ? counterOf(space) : null
  if (!counter) return completed(space, {}, ({ values }) => shuffled(values, random))
  let point: Point = {}
  let node = counter.node(point)
  if (counter.below(node, point).points === 0) return null
  for (;;) {
    const open = counter.open(node, point)
    if (!open) return point
    const below = open.values.map((v) => {
      const partial = withValue(point, open.name, v)
      return { partial, node: counter.child(node, v, partial) }
    })
    const counts = below.map((b) => counter.below(b.node, b.partial).points)
    let at = random() * counts.reduce((n, c) => n + c, 0)
    let k = counts.findLastIndex((c) => c > 0)
    for (const [n, c] of counts.entries()) {
      if (at < c) {
        k = n
        break
      }
      at -= c
    }
    point = below[k]!.partial
    node = below[k]!.node
  }
}

/** Values that led nowhere before a point counts as not found. */
const SEARCHED_VALUES = 20_000

/** The first whole point from `partial`, where each decision tries its values in the order that `prefer` gives. */
function completed(
  space: PointSpace,
  partial: Point,
  prefer: (open: OpenDecision) => readonly DecisionValue[],
): Point | null {
  let left = SEARCHED_VALUES
  const dead = new Set<string>()
  const from = (at: Point): Point | null => {
    const key = space.rest?.(at)
    if (key !== undefined && dead.has(key)) return null
    const open = space.next(at)
    if (!open) return at
    for (const value of prefer(open)) {
      const found = left > 0 ? from(withValue(at, open.name, value)) : null
      if (found) return found
    }
    left -= effortOf(open)
    if (key !== undefined) dead.add(key)
    return null
  }
  return from(partial)
}

/**
 * A point that has the values of `wanted` wherever the space allows them: the nearest allowed number elsewhere, and
 * what is not in `wanted` at random, or the first value without `random`. `null`: none was found.
 */
export function repaired(space: PointSpace, wanted: Point, random?: Random): Point | null {
  return completed(space, {}, ({ name, values, ordered }) => {
    const value = Object.hasOwn(wanted, name) ? wanted[name] : undefined
    const others = random && value === undefined ? shuffled(values, random) : values
    if (value === undefined) return others
    if (values.includes(value))
      return [value, ...(random ? shuffled(without(values, value), random) : without(values, value))]
    return ordered && typeof value === 'number' ? byDistance(values, value) : others
  })
}

const without = (values: readonly DecisionValue[], value: DecisionValue): readonly DecisionValue[] =>
  values.filter((v) => v !== value)

const byDistance = (values: readonly DecisionValue[], to: number): readonly DecisionValue[] =>
  [...values].sort((a, b) => Math.abs(Number(a) - to) - Math.abs(Number(b) - to))

/** What else a decision of a point could be: the numbers on both sides of an ordered one, all others otherwise. */
function alternatives({ values, ordered }: OpenDecision, value: DecisionValue): readonly DecisionValue[] {
  const at = values.indexOf(value)
  return ordered ? [values[at - 1], values[at + 1]].filter((v) => v !== undefined) : without(values, value)
}

/** The decisions of a point, in order, each as it was open. @throws SptError as `check` */
function walked(
  space: PointSpace,
  point: Point,
): readonly { readonly open: OpenDecision; readonly before: Point }[] {
  const out: { readonly open: OpenDecision; readonly before: Point }[] = []
  let before: Point = {}
  for (;;) {
    const open = space.next(before)
    if (!open) return out
    if (!Object.hasOwn(point, open.name)) missing(space, open)
    const value = point[open.name]!
    if (!open.values.includes(value)) refused(space, open, value)
    out.push({ open, before })
    before = withValue(before, open.name, value)
  }
}

/**
 * The points that differ from `point` in one decision, as little as that can: the others are kept where they are still
 * allowed. Each once, without `point` itself.
 */
export function neighbours(space: PointSpace, point: Point): readonly Point[] {
  const found = new Map<string, Point>()
  for (const { open, before } of walked(space, point))
    for (const value of alternatives(open, point[open.name]!)) {
      const near = changed(space, point, withValue(before, open.name, value))
      if (near) found.set(pointKey(near), near)
    }
  found.delete(pointKey(check(space, point)))
  return [...found.values()]
}

/** `fixed`, and after it `point` as far as it is allowed. */
function changed(space: PointSpace, point: Point, fixed: Point, random?: Random): Point | null {
  const rest: PointSpace = {
    name: space.name,
    next: (partial) => space.next({ ...fixed, ...partial }),
    ...(space.rest && { rest: (partial) => space.rest!({ ...fixed, ...partial }) }),
  }
  const more = repaired(rest, point, random)
  return more && { ...fixed, ...more }
}

/**
 * A point that differs from `point` in a decision drawn at random, and in what depends on it; `null` where no decision
 * can be another.
 */
export function mutate(space: PointSpace, point: Point, random: Random): Point | null {
  const places = walked(space, point).flatMap(({ open, before }) => {
    const others = without(open.values, point[open.name]!)
    return others.length > 0 ? [{ open, before, others }] : []
  })
  for (const place of shuffled(places, random))
    for (const value of shuffled(place.others, random)) {
      const other = changed(space, point, withValue(place.before, place.open.name, value), random)
      if (other) return other
    }
  return null
}

/** A point with some values of each of two: what `a` and `b` agree on, where the space allows it. `null`: none was found. */
export function crossed(space: PointSpace, a: Point, b: Point, random: Random): Point | null {
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  const mixed = [...names].map((name): [string, DecisionValue] => {
    const [first, second] = random() < 0.5 ? [a, b] : [b, a]
    return [name, Object.hasOwn(first, name) ? first[name]! : second[name]!]
  })
  return repaired(space, Object.fromEntries(mixed), random)
}

/**
 * The point with its values in the order of the decisions.
 * @throws SptError `space/point` where a value is missing, not allowed, or of no decision
 */
export function check(space: PointSpace, point: Point): Point {
  checkSpace(space)
  expectArgument(isRecord(point), 'a point', point, 'values by decision')
  const decisions = walked(space, point).map(({ open }) => open.name)
  refuseOthers(space.name, point, new Set(decisions))
  return Object.fromEntries(decisions.map((name) => [name, point[name]!]))
}

function missing(space: PointSpace, { name, values }: OpenDecision): never {
  return fail({
    code: 'space/point',
    message: `the point of ${space.name} does not decide ${name}`,
    expected: valuesText(values),
  })
}

function refused(space: PointSpace, { name, values }: OpenDecision, value: unknown): never {
  return fail({
    code: 'space/point',
    message: `${name} cannot be ${String(value)} in ${space.name} after the values before it`,
    expected: valuesText(values),
  })
}

const SHOWN = 12

const valuesText = (values: readonly DecisionValue[]): string =>
  values.length === 0
    ? 'other values before it: none is allowed after these'
    : `one of ${values.slice(0, SHOWN).join(', ')}${values.length > SHOWN ? `, … (${values.length})` : ''}`
