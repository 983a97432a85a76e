/** Trials reported to a strategy: the best outcome of each point. */
import { SptError } from '../../ast/diagnostic.ts'
import { checking, pointKey } from '../point-walks.ts'
import type { Stepwise } from '../stepwise.ts'
import type { Outcome, Point, PointSpace, Trial } from '../types.ts'

export interface Told {
  readonly point: Point
  /** Milliseconds; `null`: it cannot be used. */
  readonly ms: number | null
  /** Of the effort of a usual measurement. */
  readonly share: number
}

/** Lower bound of times, below the resolution of clocks, so that logarithms exist. */
const LEAST_MS = 1e-9

export class ToldPoints {
  readonly #space: PointSpace
  readonly #byKey = new Map<string, Told>()
  readonly #wrong = new Set<string>()
  /** Grows with everything that changes what is known. */
  version = 0

  constructor(space: PointSpace) {
    this.#space = space
  }

  /** The point in the order of its decisions; `null` for one that is not of the space. */
  *add({ point, outcome, share = 1 }: Trial): Stepwise<Told | null> {
    const own = yield* this.#own(point)
    if (!own) return null
    const key = pointKey(own)
    if (outcome.status === 'wrong') this.#wrong.add(key)
    const known = this.#byKey.get(key)
    const told = { point: own, ms: this.#wrong.has(key) ? null : usable(outcome), share }
    // What was measured with more effort is not forgotten for less; what is wrong once is wrong for good.
    if (!known || told.ms === null || (known.ms !== null && known.share <= share)) {
      this.#byKey.set(key, told)
      this.version++
    }
    return told
  }

  *#own(point: Point): Stepwise<Point | null> {
    try {
      return yield* checking(this.#space, point)
    } catch (e) {
      if (e instanceof SptError) return null
      throw e
    }
  }

  get size(): number {
    return this.#byKey.size
  }

  all(): readonly Told[] {
    return [...this.#byKey.values()]
  }

  /** Fastest first. */
  measured(): readonly (Told & { readonly ms: number })[] {
    return this.all()
      .filter((t): t is Told & { readonly ms: number } => t.ms !== null)
      .sort((a, b) => a.ms - b.ms)
  }
}

function usable(outcome: Outcome): number | null {
  if (outcome.status !== 'measured') return null
  const { median } = outcome.timing
  return Number.isFinite(median) && median >= 0 ? Math.max(median, LEAST_MS) : null
}
