/** Units of effort for limits that are the same on every machine. */
import type { OpenDecision } from '../types.ts'

/** Effort of evaluating a decision: 1, plus 1 for each value whose conditions were evaluated. */
export const effortOf = (open: OpenDecision | null): number =>
  1 + (open?.considered ?? open?.values.length ?? 0)

/** Number of values per visited node that may be evaluated: few of them lead to new nodes. */
const VALUES = 20

/** Number of values evaluated without finding a point after which a space counts as contradictory (`failDeadEnds`). */
export const BARREN = 1_000_000

/** A budget of effort that can be used up. */
export class Effort {
  #left: number

  constructor(values: number) {
    this.#left = values
  }

  /** Budget for visiting this many nodes. */
  static ofPlaces(count: number): Effort {
    return new Effort(VALUES * count)
  }

  spend(open: OpenDecision | null): void {
    this.#left -= effortOf(open)
  }

  get isSpent(): boolean {
    return this.#left <= 0
  }
}
