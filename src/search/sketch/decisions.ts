/**
 * Decisions by replay: rules ask for values as they go along, and are run again with one value more for each decision, so
 * that what is asked may depend on all that was answered.
 */
import { invariant } from '../../ast/diagnostic.ts'

/** Values by decision: a point of a space, as far as it is decided. */
export type Decided = Readonly<Record<string, number | string>>

/** A decision that is asked next. */
export interface Asked {
  readonly name: string
  readonly values: readonly (number | string)[]
  readonly ordered: boolean
}

/** Thrown to leave a rule at the first decision that the point leaves open. */
class Open {
  readonly decision: Asked

  constructor(decision: Asked) {
    this.decision = decision
  }
}

export class Decisions {
  readonly #point: Decided | null
  readonly #taken: Record<string, number | string> = {}

  /** `null`: the best guess of each. */
  constructor(point: Decided | null) {
    this.#point = point
  }

  /** The answers so far. */
  get taken(): Decided {
    return this.#taken
  }

  /**
   * The value of a decision; of numbers, which ascend, `guess` is the best guess, of names the first is. One that has a
   * single value is none. Points have been checked.
   */
  choose<T extends number | string>(name: string, values: readonly T[], guess: T = values[0]!): T {
    if (values.length === 1) return values[0]!
    // Nests that decide together are alike, but for constants, by which some have other values.
    if (Object.hasOwn(this.#taken, name)) return values.find((v) => v === this.#taken[name]) ?? guess
    if (this.#point === null) {
      this.#taken[name] = guess
      return guess
    }
    const value = Object.hasOwn(this.#point, name) ? this.#point[name] : undefined
    const ordered = values.every((v) => typeof v === 'number')
    if (value === undefined) throw new Open({ name, values, ordered })
    const found = values.find((v) => v === value)
    invariant(found !== undefined, () => `${name} is not ${value} here`)
    this.#taken[name] = found
    return found
  }
}

/** What is still open of a point when a rule is run with it, or `null`. */
export function openIn(point: Decided, rule: (decisions: Decisions) => void): Asked | null {
  try {
    rule(new Decisions(point))
    return null
  } catch (e) {
    if (e instanceof Open) return e.decision
    throw e
  }
}
