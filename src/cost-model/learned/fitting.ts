/**
 * Fits the coefficients of a device to measured times. Errors are logarithmic, so that short kernels count as much as long
 * ones, with a loss robust to outliers (Huber, 1964). The search is direct, because maxima of limits have no derivatives
 * (Hooke and Jeeves, 1961).
 */
import { analyticTime, type Coefficients, partsOf } from '../analytic.ts'
import type { Terms } from '../terms.ts'

/** A kernel on some data, with its measured time. */
export interface TimedTerms {
  readonly terms: Terms
  readonly milliseconds: number
  /** Weight of the sample; default 1. */
  readonly weight?: number | undefined
}

export type CoefficientName = Exclude<keyof Coefficients, 'norm'>

export interface FitOptions {
  /** Coefficients to fit; default: all initial ones. Coefficients that no sample depends on keep their values. */
  readonly names?: readonly CoefficientName[] | undefined
  /** Regularisation towards the initial values, on squared logarithms, for undetermined ones; default 1e-4. */
  readonly regularisation?: number | undefined
}

export interface Fit {
  readonly coefficients: Coefficients
  /** Mean of |log(expected / measured)|, by weight. */
  readonly error: number
}

/** Huber's threshold: smaller errors count squared, larger ones linearly. */
const NEAR = 0.05
/** Factors tried, coarse to fine: a coefficient has an effect only where it is a limit. */
const FACTORS = [256, 64, 16, 4, 2, 1.5, 1.2, 1.1, 1.05, 1.02, 1.01, 1.005, 1.002] as const
const SWEEPS = 40
const LEAST_GAIN = 1e-9

export function fitCoefficients(
  samples: readonly TimedTerms[],
  initial: Coefficients,
  options: FitOptions = {},
): Fit {
  const { names = positiveNames(initial), regularisation = 1e-4 } = options
  const valid = samples.filter((s) => s.milliseconds > 0 && Number.isFinite(s.milliseconds))
  const cost = (c: Coefficients): number =>
    weightedMean(valid, (s) => huber(logError(s, c))) +
    regularisation * names.reduce((sum, n) => sum + Math.log(c[n]! / initial[n]!) ** 2, 0)

  let best: Point = { coefficients: initial, cost: cost(initial) }
  const evaluate = (coefficients: Coefficients): Point => ({ coefficients, cost: cost(coefficients) })
  const scale = (c: Coefficients, name: CoefficientName, factor: number): Coefficients => ({
    ...c,
    [name]: c[name]! * factor,
  })
  const explore = (start: Point, factor: number): Point =>
    names.reduce((p, name) => {
      const neighbours = [
        evaluate(scale(p.coefficients, name, factor)),
        evaluate(scale(p.coefficients, name, 1 / factor)),
      ]
      return neighbours.reduce((a, b) => (isBetter(b, a) ? b : a), p)
    }, start)
  for (const factor of FACTORS)
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      const next = explore(best, factor)
      if (!isBetter(next, best)) break
      // Pattern move of Hooke and Jeeves: as far again in the same direction, along valleys oblique to the
      // coefficients.
      const extrapolation = evaluate(extrapolate(best.coefficients, next.coefficients, names))
      best = isBetter(extrapolation, next) ? extrapolation : next
    }
  return {
    coefficients: best.coefficients,
    error: weightedMean(valid, (s) => Math.abs(logError(s, best.coefficients))),
  }
}

/** Names of the coefficients that are positive; zeros mean that something costs nothing. */
const positiveNames = (c: Coefficients): CoefficientName[] =>
  (Object.keys(c) as (keyof Coefficients)[]).flatMap((n) => (n === 'norm' || !(c[n]! > 0) ? [] : [n]))

/** Coefficients that times do not determine: a property of the chip, and caches have no sharp size. */
const FIXED: ReadonlySet<CoefficientName> = new Set(['threads', 'cacheBytes'])

/** Names of the coefficients that measured times determine. */
export const learnableNames = (c: Coefficients): CoefficientName[] =>
  positiveNames(c).filter((n) => !FIXED.has(n))

interface Point {
  readonly coefficients: Coefficients
  readonly cost: number
}

const isBetter = (a: Point, b: Point): boolean => a.cost < b.cost - LEAST_GAIN

/** Expected milliseconds under coefficients; positive. */
export const expectedTime = (terms: Terms, c: Coefficients): number =>
  Math.max(analyticTime(partsOf(terms, c), c), 1e-12)

/** log(expected / measured) under coefficients. */
export const logError = ({ terms, milliseconds }: TimedTerms, c: Coefficients): number =>
  Math.log(expectedTime(terms, c) / milliseconds)

function huber(error: number): number {
  const magnitude = Math.abs(error)
  return magnitude <= NEAR ? magnitude ** 2 / 2 : NEAR * (magnitude - NEAR / 2)
}

function extrapolate(a: Coefficients, b: Coefficients, names: readonly CoefficientName[]): Coefficients {
  return { ...b, ...Object.fromEntries(names.map((n) => [n, b[n]! * (b[n]! / a[n]!)])) }
}

function weightedMean(samples: readonly TimedTerms[], measure: (s: TimedTerms) => number): number {
  let [sum, weights] = [0, 0]
  for (const s of samples) {
    const weight = s.weight ?? 1
    sum += weight * measure(s)
    weights += weight
  }
  return weights === 0 ? 0 : sum / weights
}
