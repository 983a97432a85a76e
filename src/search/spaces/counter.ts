/** Counts the points of a space by memoising subtrees with equal rests. */

import type { Coroutine } from '../../ast/work.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import type { DecisionValue, OpenDecision, Point, PointSpace } from '../types.ts'

export const withValue = (point: Point, name: string, value: DecisionValue): Point => ({
  ...point,
  [name]: value,
})

export interface Counted {
  /** Number of points found; all of them if it is exact. Rounded above 2^53. */
  readonly points: number
  readonly isExact: boolean
}

/** Subtree of a space shared by all partial points with the same rest. */
export interface Rest {
  /** Next decision, once it was evaluated. */
  open?: OpenDecision | null
  /** Once all points are found. */
  count?: Counted
  readonly children: Map<DecisionValue, Rest>
}

/** Counts the points below partial points; subtrees with the same remainder are counted once. */
export class Counter {
  readonly #effort: Effort
  /** Effort with conditions: finding equal remainders evaluates them, even if points are counted quickly. */
  readonly #withEqual: Effort
  readonly #nodes = new Map<string, Rest>()
  #left: number

  /** @param nodes - Maximum number of subtrees, which take up to `VALUES` times the effort */
  constructor(
    private readonly space: PointSpace,
    limit: number,
    nodes?: number,
  ) {
    this.#effort = nodes === undefined ? new Effort(limit) : Effort.ofPlaces(limit)
    this.#withEqual = Effort.ofPlaces(limit)
    this.#left = nodes ?? Number.POSITIVE_INFINITY
  }

  node(partial: Point): Rest {
    const key = this.space.remainderKey?.(partial)
    const node: Rest = (key === undefined ? undefined : this.#nodes.get(key)) ?? { children: new Map() }
    if (node.open !== undefined) this.#withEqual.spend(node.open)
    else this.#left--
    if (key !== undefined) this.#nodes.set(key, node)
    return node
  }

  open(node: Rest, partial: Point): OpenDecision | null {
    if (node.open === undefined) node.open = this.space.next(partial)
    return node.open
  }

  /** `partial`: with the value. */
  child(node: Rest, value: DecisionValue, partial: Point): Rest {
    return getOrAdd(node.children, value, () => this.node(partial))
  }

  get #isSpent(): boolean {
    return this.#left < 0 || this.#effort.isSpent || this.#withEqual.isSpent
  }

  *below(node: Rest, partial: Point): Coroutine<Counted> {
    if (node.count) return node.count
    if (this.#isSpent) return { points: 0, isExact: false }
    const open = this.open(node, partial)
    yield
    this.#effort.spend(open)
    let total: Counted = { points: open ? 0 : 1, isExact: true }
    for (const value of open?.values ?? []) {
      if (this.#isSpent) return { ...total, isExact: false }
      const next = withValue(partial, open!.name, value)
      const { points, isExact } = yield* this.below(this.child(node, value, next), next)
      total = { points: total.points + points, isExact: total.isExact && isExact }
    }
    if (total.isExact) node.count = total
    return total
  }
}

// Units of effort for limits that are the same on every machine.

/** Effort of evaluating a decision: 1, plus 1 for each value whose conditions were evaluated. */
export const effortOf = (open: OpenDecision | null): number =>
  1 + (open?.considered ?? open?.values.length ?? 0)

/** Number of values per visited node that may be evaluated: few of them lead to new nodes. */
const VALUES = 20

/** Number of values evaluated without finding a point after which a space counts as contradictory (`failDeadEnds`). */
export const BARREN = 1_000_000

/** A budget of effort that can be used up. */
export class Effort {
  constructor(private left: number) {}

  /** Budget for visiting this many nodes. */
  static ofPlaces(count: number): Effort {
    return new Effort(VALUES * count)
  }

  spend(open: OpenDecision | null): void {
    this.left -= effortOf(open)
  }

  get isSpent(): boolean {
    return this.left <= 0
  }
}
