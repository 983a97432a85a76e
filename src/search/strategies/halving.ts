import { drawing, pointKey } from '../point-walks.ts'
import type { Stepwise } from '../stepwise.ts'
import type { Point, StrategyFactory } from '../types.ts'
import type { Told } from './known-trials.ts'
import { StrategyBase } from './strategy-base.ts'

/** Share of a measurement on each rung (successive halving). */
const SHARES = [1 / 4, 1 / 2, 1] as const
/** Reduction factor: the fastest of this many points advances to the next rung. */
const ETA = 2
/** Points at random that the prior chooses among. */
const LITTER = 16

/**
 * Asynchronous successive halving (Li et al., 2020): many points get a short measurement, the fastest half of them a longer
 * one, and so on. It pays where the measuring itself is what takes the time.
 */
export const halving: StrategyFactory = (space, options) => new Halving(space, options)

class Halving extends StrategyBase {
  readonly name = 'halving'
  /** Points by what they were measured with, and the time. */
  readonly #rungs = SHARES.map(() => new Map<string, Told & { readonly ms: number }>())
  readonly #promoted = SHARES.map(() => new Set<string>())
  readonly #shares = new Map<string, number>()

  share(point: Point): number {
    return this.#shares.get(pointKey(point)) ?? SHARES[0]
  }

  protected override learn({ point, ms, share }: Told): void {
    const key = pointKey(point)
    // What is refused, or wrong with more effort, goes nowhere.
    for (const rung of this.#rungs) if (ms === null) rung.delete(key)
    if (ms === null) return
    const rung = SHARES.findLastIndex((s) => s <= share + 1e-9)
    this.#rungs[Math.max(0, rung)]!.set(key, { point, ms, share })
  }

  protected *next(): Stepwise<Point | null> {
    const promoted = this.#promote(ETA)
    if (promoted) return promoted
    const fresh = yield* this.hasPrior
      ? this.likelyOf(LITTER)
      : this.unseen.fresh(() => drawing(this.space, this.random))
    // Where there are no others, all that is left gets the rest of its measurement, the fastest first.
    return fresh ?? this.#promote(1)
  }

  /** The fastest of the highest rung in which it is among the first of every `eta`. */
  #promote(eta: number): Point | null {
    for (let rung = SHARES.length - 2; rung >= 0; rung--) {
      const [all, gone] = [this.#rungs[rung]!, this.#promoted[rung]!]
      const first = [...all].sort(([, a], [, b]) => a.ms - b.ms).slice(0, Math.floor(all.size / eta))
      const next = first.find(([key]) => !gone.has(key))
      if (!next) continue
      const [key, { point }] = next
      gone.add(key)
      this.#shares.set(key, SHARES[rung + 1]!)
      return point
    }
    return null
  }
}
