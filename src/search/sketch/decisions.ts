/**
 * Decisions by replay: a rule requests values as it runs, and is rerun with one value more for each decision, so that a
 * decision may depend on all earlier values.
 */
import { invariant } from '../../ast/diagnostic.ts'

/** Values by decision: a point of a space, as far as it is decided. */
export type Decided = Readonly<Record<string, number | string>>

/** A decision that is asked next. */
export interface Asked {
  readonly name: string
  readonly values: readonly (number | string)[]
  readonly ordered: boolean
  /** Those that are the best more often than others, or, of numbers, near them. */
  readonly likely: readonly (number | string)[]
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
  readonly #guesses: boolean
  readonly #taken: Record<string, number | string> = {}
  readonly #asked: Asked[] = []
  readonly #forms: string[] = []

  /** `null`: the best guess of each. `guesses`: those that the point leaves open, or has another value of, are guessed. */
  constructor(point: Decided | null, guesses = point === null) {
    this.#point = point
    this.#guesses = guesses
  }

  /** The answers so far. */
  get taken(): Decided {
    return this.#taken
  }

  /** The decisions so far, in order. */
  get asked(): readonly Asked[] {
    return this.#asked
  }

  /** Names of the decisions on which the other decisions depend. */
  get forms(): readonly string[] {
    return this.#forms
  }

  /** Like `choose`, for decisions on the partition of loops, which determine the other decisions. */
  form<T extends number | string>(name: string, values: readonly T[], guess: T = values[0]!): T {
    const isNew = values.length > 1 && !Object.hasOwn(this.#taken, name)
    if (isNew) this.#forms.push(name)
    return this.choose(name, values, guess)
  }

  /**
   * The value of a decision; of numbers, which ascend, `guess` is the best guess, of names the first is. One that has a
   * single value is none. Points have been checked.
   * @param likely where others than the guess may be the best as well
   */
  choose<T extends number | string>(
    name: string,
    values: readonly T[],
    guess: T = values[0]!,
    likely: readonly T[] = [guess],
  ): T {
    if (values.length === 1) return values[0]!
    // Nests that decide together are alike, but for constants, by which some have other values.
    if (Object.hasOwn(this.#taken, name)) return values.find((v) => v === this.#taken[name]) ?? guess
    const given = this.#point !== null && Object.hasOwn(this.#point, name) ? this.#point[name] : undefined
    const found = values.find((v) => v === given)
    const asked = { name, values, ordered: values.every((v) => typeof v === 'number'), likely }
    if (!this.#guesses) {
      if (given === undefined) throw new Open(asked)
      invariant(found !== undefined, () => `${name} is not ${given} here`)
    }
    const value = found ?? guess
    this.#asked.push(asked)
    this.#taken[name] = value
    return value
  }
}

/** The next open decision when a rule runs with a point; `null` if the point is complete. */
export function openIn(point: Decided, rule: (decisions: Decisions) => void): Asked | null {
  try {
    rule(new Decisions(point))
    return null
  } catch (e) {
    if (e instanceof Open) return e.decision
    throw e
  }
}
