/** What limits of time are measured in, so that they are the same on every machine. */
import type { OpenDecision } from './types.ts'

/** What it takes to ask a decision: itself, and each value that conditions were asked about. */
export const effortOf = (open: OpenDecision | null): number =>
  1 + (open?.considered ?? open?.values.length ?? 0)

/** Values that may be asked about for each place of a space that may be looked at: few of them lead to a place of their own. */
const VALUES = 20

/** Values that are looked at without a point after which a space counts as contradictory: `failDeadEnds` says so. */
export const BARREN = 1_000_000

/** What may be asked before one gives up. */
export class Effort {
  #left: number

  constructor(values: number) {
    this.#left = values
  }

  /** To look at so many places. */
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
