/**
 * Costs of many points of which few are predicted: some of each form, then those that a regression on them expects to be the
 * best, or knows too little of (the lower confidence bound: Cox and John, 1992), and the others as it expects them.
 */
import { scattered } from '../expected.ts'
import type { Stepwise } from '../stepwise.ts'
import type { Point } from '../types.ts'
import { type Decisions, decisionsOf, PointRegression } from './point-regression.ts'

/** What is known of a point. */
export interface Cost {
  /** Milliseconds; `Infinity` where it is refused. */
  readonly milliseconds: number
  /** Standard deviation of the logarithm; 0: it was predicted. */
  readonly deviation: number
}

/** Shares of what is predicted: first by forms, then by what came of that, as often as is said. */
const FIRST = 1 / 2
const ROUNDS = 2
/** Of each form, where there are so many. */
const OF_A_FORM = 3
/** At the front of the order nothing is estimated. */
export const SURE = 16
/** Fewer points for each that is predicted are all predicted. */
const WORTH = 2

/**
 * In the order of the points.
 * @param count about so many are asked of `predicted`, and what comes first until the first `SURE` are
 */
export function* estimated(
  points: readonly Point[],
  count: number,
  predicted: (points: readonly Point[]) => Stepwise<readonly number[]>,
): Stepwise<readonly Cost[]> {
  if (points.length < WORTH * count) {
    const costs = yield* predicted(points)
    return costs.map((milliseconds) => ({ milliseconds, deviation: 0 }))
  }
  const at = decisionsOf(points)
  const known = new Map<number, number>()
  const ask = function* (which: readonly number[]): Stepwise<void> {
    const costs = yield* predicted(which.map((k) => points[k]!))
    for (const [j, k] of which.entries()) known.set(k, costs[j]!)
  }
  yield* ask(ofEachForm(at, FIRST * count))
  let found = expectedOf(at, known)
  for (let left = ROUNDS; left > 0 && known.size < count; left--) {
    const open = unknownBy(found, known, (e) => Math.log(e.milliseconds) - e.deviation)
    yield* ask(open.slice(0, Math.ceil((count - known.size) / left)))
    found = expectedOf(at, known)
  }
  for (;;) {
    const first = found.map((_, k) => k).sort((a, b) => found[a]!.milliseconds - found[b]!.milliseconds)
    const open = first.slice(0, SURE).filter((k) => !known.has(k))
    if (open.length === 0) return found
    yield* ask(open)
    found = expectedOf(at, known)
  }
}

/** Places that are not known, the least first. */
const unknownBy = (
  found: readonly Cost[],
  known: ReadonlyMap<number, number>,
  by: (cost: Cost) => number,
): readonly number[] => {
  const keys = found.map(by)
  return found.flatMap((_, k) => (known.has(k) ? [] : [k])).sort((a, b) => keys[a]! - keys[b]! || a - b)
}

/** Places of about so many points: of forms with more points more, but not in proportion. */
function ofEachForm(at: readonly Decisions[], count: number): readonly number[] {
  const forms = new Map<string, number[]>()
  for (const [k, { form }] of at.entries()) forms.set(form, [...(forms.get(form) ?? []), k])
  const lists = [...forms.values()]
  const whole = lists.reduce((sum, l) => sum + Math.sqrt(l.length), 0)
  return lists.flatMap((l) =>
    scattered(l).slice(0, Math.max(OF_A_FORM, Math.round((count * Math.sqrt(l.length)) / whole))),
  )
}

function expectedOf(at: readonly Decisions[], known: ReadonlyMap<number, number>): readonly Cost[] {
  const finite = [...known.values()].filter(Number.isFinite)
  // What is refused counts as the worst of what is not: so are its neighbours expected to be.
  const worst = Math.log(Math.max(Number.MIN_VALUE, ...finite))
  const model = PointRegression.fit(
    [...known.keys()].map((k) => at[k]!),
    [...known.values()].map((c) => (Number.isFinite(c) ? Math.log(c) : worst)),
  )
  return at.map((d, k) => {
    const cost = known.get(k)
    if (cost !== undefined) return { milliseconds: cost, deviation: 0 }
    const { mean, deviation } = model.expect(d)
    return { milliseconds: Math.exp(mean), deviation }
  })
}
