/** Validates user-defined strategies and the points they propose. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { isRecord, show } from '../../ast/diagnostics/expect-argument.ts'
import { outcomeFault } from '../outcomes.ts'
import { checking, pointKey } from '../spaces/point-walks.ts'
import type { Stepwise } from '../stepwise.ts'
import type { Outcome, Point, PointSpace, Strategy } from '../types.ts'

/** @throws SptError `search/strategy` if it lacks `ask` or `tell` */
export function properStrategy(made: unknown): Strategy {
  if (isRecord(made) && typeof made.ask === 'function' && typeof made.tell === 'function')
    return made as unknown as Strategy
  return fail({
    code: 'search/strategy',
    message: `a strategy is ${show(made)}`,
    expected: '{ name, ask, tell }',
  })
}

/** Checks proposed points: each belongs to the space, and is proposed again only for a greater share. */
export class ProposedPoints {
  readonly #space: PointSpace
  readonly #shares = new Map<string, number>()

  constructor(space: PointSpace) {
    this.#space = space
  }

  /** @throws SptError `search/strategy`, and `space/point` where one is not of the space */
  *proper(given: unknown, most: number, strategy: Strategy): Stepwise<readonly Point[]> {
    if (!Array.isArray(given) || given.length > most)
      return fail({
        code: 'search/strategy',
        message: `a strategy must return at most ${most} points, and returned ${Array.isArray(given) ? given.length : show(given)}`,
        expected:
          'a list of at most the requested number of points, not a promise; an empty list ends the search',
        ...(given instanceof Promise
          ? { hint: 'make ask a function that is not async; only evaluate may be async' }
          : {}),
      })
    const out: Point[] = []
    for (const wanted of given as readonly Point[]) {
      const point = yield* checking(this.#space, wanted)
      const key = pointKey(point)
      const [share, before] = [strategy.share?.(wanted) ?? 1, this.#shares.get(key) ?? 0]
      if (!(share > before && share <= 1)) refuse(point, share, before)
      this.#shares.set(key, share)
      out.push(point)
    }
    return out
  }
}

function refuse(point: Point, share: number, before: number): never {
  return fail({
    code: 'search/strategy',
    message:
      before > 0
        ? `a strategy repeats ${JSON.stringify(point)}`
        : `a strategy requests a share of ${show(share)} of the measurement of ${JSON.stringify(point)}`,
    expected:
      before > 0 ? `a new point, or a share of more than ${before}` : 'a share of more than 0, at most 1',
    hint: 'a list without points ends the search',
  })
}

// Validates the outcomes that user functions return.

/**
 * Validates outcomes of points. An impossible time (NaN, negative) becomes a failed outcome, so that the other measurements
 * are kept.
 * @throws SptError `search/outcomes` if the number of outcomes differs from the number of points
 */
export function properOutcomes(
  asked: readonly { readonly point: Point }[],
  given: unknown,
  mayBeNull = false,
): readonly (Outcome | null)[] {
  const isList = Array.isArray(given)
  if (!isList || given.length !== asked.length)
    return fail({
      code: 'search/outcomes',
      message: `${asked.length} points were measured, and ${isList ? `${given.length} outcomes` : show(given)} came`,
      expected: 'a list with an outcome for each point, in their order',
    })
  return given.map((outcome, k) => {
    if (outcome === null && mayBeNull) return null
    const fault = outcomeFault(outcome)
    if (fault === null) return outcome
    const { what, expected, isTime } = fault
    if (isTime) return { status: 'failed', code: 'search/outcomes', message: `${what}, not ${expected}` }
    return fail({
      code: 'search/outcomes',
      message: `${what}: of ${JSON.stringify(asked[k]!.point)}`,
      expected,
    })
  })
}
