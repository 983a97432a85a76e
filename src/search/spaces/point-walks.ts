/** Stepwise implementation of `points.ts`: a pause follows each evaluation of a decision, which may be slow. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, isRecord } from '../../ast/diagnostics/expect-argument.ts'
import type { Coroutine } from '../../ast/work.ts'
import { refuseOthers } from '../../elaborate/index.ts'
import { shuffled } from '../statistics/shuffled.ts'
import type { DecisionValue, OpenDecision, Point, PointSpace } from '../types.ts'
import { type Counted, Counter, Effort, withValue } from './counter.ts'

/** Uniform in [0, 1). */
export type Random = () => number

/** Values of decisions that counting looks at before it gives up. */
export const COUNT_LIMIT = 20_000

/** @throws SptError `api/argument` */
export function checkSpace(space: PointSpace): void {
  expectArgument(typeof space?.next === 'function', 'space', space, 'a space of points')
}

/** @throws SptError `api/argument` */
export function checkLimit(limit: number): void {
  const holds = limit >= 1 && (Number.isSafeInteger(limit) || limit === Number.POSITIVE_INFINITY)
  expectArgument(holds, 'the limit', limit, 'an integer from 1 on')
}

/** Key of a point in maps and sets: equal for equal decisions. */
export const pointKey = (point: Point): string => JSON.stringify(Object.entries(point))

/** Every point, in the order of the values; `undefined` is a pause. */
export function* walkPoints(space: PointSpace, from: Point = {}): Generator<Point | undefined> {
  const open = space.next(from)
  yield undefined
  if (!open) yield from
  else for (const value of open.values) yield* walkPoints(space, withValue(from, open.name, value))
}

/** All points, of a space that was counted. */
export function* collectPoints(space: PointSpace): Coroutine<Point[]> {
  const out: Point[] = []
  for (const point of walkPoints(space))
    if (point) out.push(point)
    else yield
  return out
}

/** @param limit values of decisions to look at */
export function* countSteps(space: PointSpace, limit: number = COUNT_LIMIT): Coroutine<Counted> {
  const counter = new Counter(space, limit)
  const { points, isExact } = yield* counter.below(counter.node({}), {})
  return { points, isExact }
}

const counters = new WeakMap<PointSpace, Counter | null>()

/** `null`: the space is too large to be counted. */
function* counterOf(space: PointSpace): Coroutine<Counter | null> {
  const cached = counters.get(space)
  if (cached !== undefined) return cached
  const counter = new Counter(space, COUNT_LIMIT)
  const { isExact } = yield* counter.below(counter.node({}), {})
  const usable = isExact ? counter : null
  counters.set(space, usable)
  return usable
}

export function* drawSteps(space: PointSpace, random: Random): Coroutine<Point | null> {
  const counter = space.remainderKey ? yield* counterOf(space) : null
  if (!counter) return yield* completeSteps(space, {}, (open) => likelyFirst(open, random))
  let point: Point = {}
  let node = counter.node(point)
  if ((yield* counter.below(node, point)).points === 0) return null
  for (;;) {
    const open = counter.open(node, point)
    if (!open) return point
    const below = open.values.map((v) => {
      const partial = withValue(point, open.name, v)
      return { partial, node: counter.child(node, v, partial) }
    })
    const counts: number[] = []
    for (const b of below) counts.push((yield* counter.below(b.node, b.partial)).points)
    let remaining = random() * counts.reduce((n, c) => n + c, 0)
    let k = counts.findLastIndex((c) => c > 0)
    for (const [n, c] of counts.entries()) {
      if (remaining < c) {
        k = n
        break
      }
      remaining -= c
    }
    point = below[k]!.partial
    node = below[k]!.node
  }
}

/** Probability that a draw starts at likely values, moves to a neighbour, and one step farther. */
const HALF = 1 / 2

/** All values at random, of which the first is oftener one that is likely. */
function likelyFirst(
  { values, ordered, likely = [] }: OpenDecision,
  random: Random,
): readonly DecisionValue[] {
  const others = shuffled(values, random)
  if (likely.length === 0 || random() < HALF) return others
  let at = values.indexOf(likely[Math.floor(random() * likely.length)]!)
  const step = random() < HALF ? 1 : -1
  while (ordered && values[at + step] !== undefined && random() < HALF) at += step
  const first = values[at]
  return first === undefined ? others : [first, ...without(others, first)]
}

/** Values that led nowhere before a point counts as not found. */
const SEARCHED_VALUES = 20_000

/** The first complete point from `partial`; each decision tries its values in the order of `prefer`. */
function* completeSteps(
  space: PointSpace,
  partial: Point,
  prefer: (open: OpenDecision) => readonly DecisionValue[],
): Coroutine<Point | null> {
  const effort = new Effort(SEARCHED_VALUES)
  const dead = new Set<string>()
  // By a stack: a pause goes through every generator that waits for another.
  const stack: Frame[] = []
  let current: Point | null = partial
  for (;;) {
    const key: string | undefined = current ? space.remainderKey?.(current) : undefined
    if (current && !(key !== undefined && dead.has(key))) {
      const open = space.next(current)
      yield
      if (!open) return current
      stack.push({ at: current, key, open, values: prefer(open)[Symbol.iterator]() })
    }
    const last = stack.at(-1)
    if (!last) return null
    const value = effort.isSpent ? undefined : last.values.next().value
    current = value === undefined ? null : withValue(last.at, last.open.name, value)
    if (current) continue
    effort.spend(last.open)
    if (last.key !== undefined) dead.add(last.key)
    stack.pop()
  }
}

/** A decision of which values are tried, below a partial point. */
interface Frame {
  readonly at: Point
  readonly key: string | undefined
  readonly open: OpenDecision
  readonly values: Iterator<DecisionValue, undefined>
}

export function* repairSteps(space: PointSpace, wanted: Point, random?: Random): Coroutine<Point | null> {
  return yield* completeSteps(space, {}, ({ name, values, ordered }) => {
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

/** Neighbouring values of a decision: the two adjacent ones if it is ordered, otherwise all others. */
function alternatives({ values, ordered }: OpenDecision, value: DecisionValue): readonly DecisionValue[] {
  const at = values.indexOf(value)
  return ordered ? [values[at - 1], values[at + 1]].filter((v) => v !== undefined) : without(values, value)
}

/** The decisions of a point, in order, each as it was open. @throws SptError as `checkPoint` */
function* decisionsOf(
  space: PointSpace,
  point: Point,
): Coroutine<readonly { readonly open: OpenDecision; readonly before: Point }[]> {
  const out: { readonly open: OpenDecision; readonly before: Point }[] = []
  let before: Point = {}
  for (;;) {
    const open = space.next(before)
    yield
    if (!open) return out
    if (!Object.hasOwn(point, open.name)) failMissing(space, open)
    const value = point[open.name]!
    if (!open.values.includes(value)) failValue(space, open, value)
    out.push({ open, before })
    before = withValue(before, open.name, value)
  }
}

export function* neighbourSteps(space: PointSpace, point: Point): Coroutine<readonly Point[]> {
  const nearby = new Map<string, Point>()
  for (const { open, before } of yield* decisionsOf(space, point))
    for (const value of alternatives(open, point[open.name]!)) {
      const near = yield* withFixed(space, point, withValue(before, open.name, value))
      if (near) nearby.set(pointKey(near), near)
    }
  nearby.delete(pointKey(yield* checkSteps(space, point)))
  return [...nearby.values()]
}

/** `fixed`, and after it `point` as far as it is allowed. */
function* withFixed(space: PointSpace, point: Point, fixed: Point, random?: Random): Coroutine<Point | null> {
  const rest: PointSpace = {
    name: space.name,
    next: (partial) => space.next({ ...fixed, ...partial }),
    ...(space.remainderKey && { remainderKey: (partial) => space.remainderKey!({ ...fixed, ...partial }) }),
  }
  const completion = yield* repairSteps(rest, point, random)
  return completion && { ...fixed, ...completion }
}

export function* mutateSteps(space: PointSpace, point: Point, random: Random): Coroutine<Point | null> {
  const places = (yield* decisionsOf(space, point)).flatMap(({ open, before }) => {
    const others = without(open.values, point[open.name]!)
    return others.length > 0 ? [{ open, before, others }] : []
  })
  for (const place of shuffled(places, random))
    for (const value of shuffled(place.others, random)) {
      const other = yield* withFixed(space, point, withValue(place.before, place.open.name, value), random)
      if (other) return other
    }
  return null
}

export function* crossoverSteps(
  space: PointSpace,
  a: Point,
  b: Point,
  random: Random,
): Coroutine<Point | null> {
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  const mixed = [...names].map((name): [string, DecisionValue] => {
    const [first, second] = random() < 0.5 ? [a, b] : [b, a]
    return [name, Object.hasOwn(first, name) ? first[name]! : second[name]!]
  })
  return yield* repairSteps(space, Object.fromEntries(mixed), random)
}

export function* checkSteps(space: PointSpace, point: Point): Coroutine<Point> {
  checkSpace(space)
  expectArgument(isRecord(point), 'a point', point, 'values by decision')
  const decisions = (yield* decisionsOf(space, point)).map(({ open }) => open.name)
  refuseOthers(space.name, point, new Set(decisions))
  return Object.fromEntries(decisions.map((name) => [name, point[name]!]))
}

function failMissing(space: PointSpace, { name, values }: OpenDecision): never {
  return failWith('space/point', `the point of ${space.name} does not decide ${name}`, {
    expected: valuesText(values),
  })
}

function failValue(space: PointSpace, { name, values }: OpenDecision, value: unknown): never {
  return failWith(
    'space/point',
    `${name} cannot be ${String(value)} in ${space.name} after the values before it`,
    { expected: valuesText(values) },
  )
}

const MAX_SHOWN = 12

const valuesText = (values: readonly DecisionValue[]): string =>
  values.length === 0
    ? 'other values before it: none is allowed after these'
    : `one of ${values.slice(0, MAX_SHOWN).join(', ')}${values.length > MAX_SHOWN ? `, … (${values.length})` : ''}`
