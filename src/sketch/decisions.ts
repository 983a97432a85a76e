/**
 * Decisions by replay: a rule requests values as it runs, and is rerun with one more value for each decision, so that a
 * decision may depend on all earlier values.
 */
import { invariant } from '../ast/diagnostics/diagnostic.ts'

/** A point of a space, or the first part of one: values by decision. */
export type PartialPoint = Readonly<Record<string, number | string>>

/** A decision that a rule requests. */
export interface Decision {
  readonly name: string
  readonly values: readonly (number | string)[]
  readonly ordered: boolean
  /** Values that are more often the best than others; for numbers, their neighbours as well. */
  readonly likely: readonly (number | string)[]
}

/** Thrown to leave a rule at the first decision without a value. */
class Interruption {
  readonly decision: Decision

  constructor(decision: Decision) {
    this.decision = decision
  }
}

export class Decisions {
  readonly #point: PartialPoint | null
  readonly #useGuesses: boolean
  readonly #values: Record<string, number | string> = {}
  readonly #requests: Decision[] = []
  readonly #forms: string[] = []

  /**
   * A replay. @param point - Given values; `null`: heuristic defaults for all decisions
   * @param useGuesses - Use the default for decisions without a valid value, instead of leaving the rule
   */
  constructor(point: PartialPoint | null, useGuesses = point === null) {
    this.#point = point
    this.#useGuesses = useGuesses
  }

  /** The values so far. */
  get values(): PartialPoint {
    return this.#values
  }

  /** The decisions so far, in order. */
  get requests(): readonly Decision[] {
    return this.#requests
  }

  /** Names of the decisions on which the other decisions depend. */
  get forms(): readonly string[] {
    return this.#forms
  }

  /** Like `choose`, for decisions on the partition of loops, which determine the other decisions. */
  form<T extends number | string>(name: string, values: readonly T[], guess: T = values[0]!): T {
    const isNew = values.length > 1 && !Object.hasOwn(this.#values, name)
    if (isNew) this.#forms.push(name)
    return this.choose(name, values, guess)
  }

  /**
   * The value of a decision. A decision with a single value is not recorded. Points have been checked before.
   * @param values - Ascending, if they are numbers
   * @param guess - The heuristic default; default: the first value
   * @param likely - Values that may be the best in addition to the guess
   */
  choose<T extends number | string>(
    name: string,
    values: readonly T[],
    guess: T = values[0]!,
    likely: readonly T[] = [guess],
  ): T {
    if (values.length === 1) return values[0]!
    // Nests that share decisions are isomorphic except for constants, which may exclude the shared value.
    if (Object.hasOwn(this.#values, name)) return values.find((v) => v === this.#values[name]) ?? guess
    const preset = this.#point !== null && Object.hasOwn(this.#point, name) ? this.#point[name] : undefined
    const match = values.find((v) => v === preset)
    const decision = { name, values, ordered: values.every((v) => typeof v === 'number'), likely }
    if (!this.#useGuesses) {
      if (preset === undefined) throw new Interruption(decision)
      invariant(match !== undefined, () => `${name} is not ${preset} here`)
    }
    const value = match ?? guess
    this.#requests.push(decision)
    this.#values[name] = value
    return value
  }
}

/** The first decision of a rule that the point leaves open; `null` if the point is complete. */
export function nextDecision(point: PartialPoint, rule: (decisions: Decisions) => void): Decision | null {
  try {
    rule(new Decisions(point))
    return null
  } catch (e) {
    if (e instanceof Interruption) return e.decision
    throw e
  }
}
