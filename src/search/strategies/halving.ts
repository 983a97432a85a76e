import { drawing, pointKey } from '../spaces/point-walks.ts'
import type { Stepwise } from '../stepwise.ts'
import type { Point, StrategyFactory } from '../types.ts'
import { StrategyBase, type Told } from './strategy-base.ts'

/** Share of a measurement on each rung (successive halving). */
const SHARES = [1 / 4, 1 / 2, 1] as const
/** Reduction factor: the fastest of this many points advances to the next rung. */
const ETA = 2
/** Number of random points among which the prior selects. */
const CANDIDATES = 16

/**
 * Asynchronous successive halving (Li et al., 2020): many points get a short measurement, the fastest half of them a
 * longer one, and so on. Worthwhile if measuring dominates the time of a search.
 */
export const halving: StrategyFactory = (space, options) => new Halving(space, options)

class Halving extends StrategyBase {
  readonly name = 'halving'
  /** Measured points by rung. */
  readonly #rungs = SHARES.map(() => new Map<string, Told & { readonly ms: number }>())
  readonly #promoted = SHARES.map(() => new Set<string>())
  readonly #shares = new Map<string, number>()

  share(point: Point): number {
    return this.#shares.get(pointKey(point)) ?? SHARES[0]
  }

  protected override learn({ point, ms, share }: Told): void {
    const key = pointKey(point)
    // Points that are rejected, or wrong in a longer measurement, leave all rungs.
    for (const rung of this.#rungs) if (ms === null) rung.delete(key)
    if (ms === null) return
    const rung = SHARES.findLastIndex((s) => s <= share + 1e-9)
    this.#rungs[Math.max(0, rung)]!.set(key, { point, ms, share })
  }

  protected *next(): Stepwise<Point | null> {
    const promoted = this.#promote(ETA)
    if (promoted) return promoted
    const fresh = yield* this.hasPrior
      ? this.likelyOf(CANDIDATES)
      : this.unseen.fresh(() => drawing(this.space, this.random))
    // Without new points, the remaining ones complete their measurements, the fastest first.
    return fresh ?? this.#promote(1)
  }

  /** The fastest point not yet promoted, of the highest rung in which it is among the first 1/eta. */
  #promote(eta: number): Point | null {
    for (let rung = SHARES.length - 2; rung >= 0; rung--) {
      const [rungPoints, promoted] = [this.#rungs[rung]!, this.#promoted[rung]!]
      const leading = [...rungPoints]
        .sort(([, a], [, b]) => a.ms - b.ms)
        .slice(0, Math.floor(rungPoints.size / eta))
      const next = leading.find(([key]) => !promoted.has(key))
      if (!next) continue
      const [key, { point }] = next
      promoted.add(key)
      this.#shares.set(key, SHARES[rung + 1]!)
      return point
    }
    return null
  }
}
