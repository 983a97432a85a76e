/**
 * Regression over the decisions of points by a Gaussian process (Rasmussen and Williams, 2006, chapters 2 and 5): what is
 * known of some points says what is to be expected of others, and how sure that is.
 */
import { ABSENT, Columns } from '../strategies/features.ts'
import type { Point } from '../types.ts'
import { cholesky, solvedLower, solvedUpper } from './cholesky.ts'

/** A point to a regression. */
export interface Decisions {
  /** Equal for points that differ in numbers alone. */
  readonly form: string
  /** Logarithms of the numbers by column, NaN where the point has none. */
  readonly numbers: Float64Array
  /** Columns of its numbers. */
  readonly own: readonly number[]
}

export function decisionsOf(points: readonly Point[]): readonly Decisions[] {
  const columns = new Columns()
  const rows = points.map((p) => columns.row(p))
  const all = Array.from({ length: columns.size }, (_, c) => c)
  const numeric = all.filter((c) => !columns.isNominal(c))
  const nominal = all.filter((c) => columns.isNominal(c))
  return rows.map((row) => {
    const at = (c: number): number => row[c] ?? ABSENT
    const numbers = Float64Array.from(numeric, (c) =>
      at(c) === ABSENT ? Number.NaN : Math.sign(at(c)) * Math.log2(1 + Math.abs(at(c))),
    )
    const own = numeric.flatMap((c, k) => (at(c) === ABSENT ? [] : [k]))
    return { form: `${nominal.map(at)} ${own}`, numbers, own }
  })
}

/** What is expected, with the standard deviation of it. */
export interface Estimate {
  readonly mean: number
  readonly deviation: number
}

interface Scales {
  /** Doublings of numbers together over which points of one form are alike. */
  readonly length: number
  /** Variance of what numbers do together, in each form for itself. */
  readonly together: number
}

const SCALES: readonly Scales[] = [1.5, 3].flatMap((length) =>
  [0.1, 0.4].map((together) => ({ length, together })),
)
/** Doublings of one number over which points are alike, whatever their forms are. */
const LENGTH = 2
/** Variances: of what each number does by itself in all forms, in one form, and of forms. Log times vary by about 1. */
const [EACH, EACH_OF_FORM, FORM] = [0.45, 0.15, 0.3]
/** Of what no decision says, as the trees of a cost model step. */
const NOISE = 3e-3

/** A rational quadratic: alike over many lengths. */
const alikeness = (squares: number, length: number): number => 1 / (1 + squares / (2 * length * length))

/** What two points have in common, whatever the scales are. */
interface Common {
  readonly sameForm: boolean
  /** Of the doublings between their numbers. */
  readonly squares: number
  /** Mean over columns. */
  readonly each: number
}

function common(a: Decisions, b: Decisions): Common {
  let [squares, alike] = [0, 0]
  for (const c of a.own) {
    const apart = a.numbers[c]! - b.numbers[c]!
    if (Number.isNaN(apart)) continue
    squares += apart * apart
    alike += alikeness(apart * apart, LENGTH)
  }
  return { sameForm: a.form === b.form, squares, each: alike / Math.max(1, a.numbers.length) }
}

const covariance = ({ sameForm, squares, each }: Common, { length, together }: Scales): number =>
  sameForm ? (EACH + EACH_OF_FORM) * each + FORM + together * alikeness(squares, length) : EACH * each

/** Fitted to what is known of some points. */
export class PointRegression {
  readonly #at: readonly Decisions[]
  readonly #scales: Scales
  readonly #lower: Float64Array
  readonly #weights: Float64Array
  readonly #mean: number
  /** Of the logarithm of how likely the values are, what differs between scales. */
  readonly #likelihood: number

  private constructor(
    at: readonly Decisions[],
    values: readonly number[],
    pairs: readonly Common[],
    scales: Scales,
  ) {
    const n = at.length
    const matrix = new Float64Array(n * n)
    for (let [i, pair] = [0, 0]; i < n; i++)
      for (let j = 0; j <= i; j++, pair++)
        matrix[i * n + j] = covariance(pairs[pair]!, scales) + (i === j ? NOISE : 0)
    this.#at = at
    this.#scales = scales
    this.#mean = values.reduce((a, b) => a + b, 0) / n
    this.#lower = cholesky(matrix, n)
    const whitened = solvedLower(
      this.#lower,
      Float64Array.from(values, (v) => v - this.#mean),
    )
    this.#weights = solvedUpper(this.#lower, whitened)
    let likelihood = 0
    for (let i = 0; i < n; i++) likelihood -= whitened[i]! ** 2 / 2 + Math.log(this.#lower[i * n + i]!)
    this.#likelihood = likelihood
  }

  /** By the scales under which the values are the most likely. @param at one at least, as many as `values` */
  static fit(at: readonly Decisions[], values: readonly number[]): PointRegression {
    const pairs = at.flatMap((a, i) => at.slice(0, i + 1).map((b) => common(a, b)))
    return SCALES.map((scales) => new PointRegression(at, values, pairs, scales)).reduce((a, b) =>
      b.#likelihood > a.#likelihood ? b : a,
    )
  }

  expect(of: Decisions): Estimate {
    const alike = Float64Array.from(this.#at, (a) => covariance(common(a, of), this.#scales))
    const mean = alike.reduce((sum, a, k) => sum + a * this.#weights[k]!, this.#mean)
    const explained = solvedLower(this.#lower, alike).reduce((sum, x) => sum + x * x, 0)
    const variance = covariance(common(of, of), this.#scales) + NOISE - explained
    return { mean, deviation: Math.sqrt(Math.max(NOISE, variance)) }
  }
}
