/** Trials reported to a strategy: the best outcome of each point. */
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { checking, pointKey } from '../spaces/point-walks.ts'
import type { Stepwise } from '../stepwise.ts'
import type { Outcome, Point, PointSpace, Trial } from '../types.ts'

export interface Told {
  readonly point: Point
  /** Milliseconds; `null` for an unusable outcome. */
  readonly ms: number | null
  /** Fraction of a full measurement. */
  readonly share: number
}

/** Lower bound of times, below the resolution of clocks, so that logarithms exist. */
const LEAST_MS = 1e-9

export class ToldPoints {
  readonly #space: PointSpace
  readonly #byKey = new Map<string, Told>()
  readonly #wrong = new Set<string>()
  /** Incremented with every change of the known trials. */
  version = 0

  constructor(space: PointSpace) {
    this.#space = space
  }

  /** Adds a trial; returns its point with ordered decisions, or `null` if it is not in the space. */
  *add({ point, outcome, share = 1 }: Trial): Stepwise<Told | null> {
    const checked = yield* this.#own(point)
    if (!checked) return null
    const key = pointKey(checked)
    if (outcome.status === 'wrong') this.#wrong.add(key)
    const known = this.#byKey.get(key)
    const trial = { point: checked, ms: this.#wrong.has(key) ? null : millisecondsOf(outcome), share }
    // A measurement replaces earlier ones of at most equal effort; a wrong result is final.
    if (!known || trial.ms === null || (known.ms !== null && known.share <= share)) {
      this.#byKey.set(key, trial)
      this.version++
    }
    return trial
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

function millisecondsOf(outcome: Outcome): number | null {
  if (outcome.status !== 'measured') return null
  const { median } = outcome.timing
  return Number.isFinite(median) && median >= 0 ? Math.max(median, LEAST_MS) : null
}
