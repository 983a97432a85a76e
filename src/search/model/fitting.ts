/**
 * Fits the coefficients of a device to measured times. Errors are logarithmic, so that short kernels count as much as long
 * ones, with a loss robust to outliers (Huber, 1964). The search is direct, because maxima of limits have no derivatives
 * (Hooke and Jeeves, 1961).
 */
import { analyticTime, type Coefficients, partsOf } from './analytic.ts'
import type { Terms } from './terms.ts'

/** A kernel on some data, and what it took. */
export interface TimedTerms {
  readonly terms: Terms
  readonly milliseconds: number
  /** Weight of the sample; 1. */
  readonly weight?: number | undefined
}

export type CoefficientName = Exclude<keyof Coefficients, 'norm'>

export interface FitOptions {
  /** Coefficients to fit; default: all of `from`. Coefficients that no sample depends on keep their values. */
  readonly names?: readonly CoefficientName[] | undefined
  /** Regularisation towards the initial values, on squared logarithms; decides coefficients that the samples do not; 1e-4. */
  readonly hold?: number | undefined
}

export interface Fit {
  readonly coefficients: Coefficients
  /** Mean of |log(expected / measured)|, by weight. */
  readonly error: number
}

/** Logarithms up to here count by their squares, larger ones as they are. */
const NEAR = 0.05
/** Factors tried, coarse to fine: a coefficient has an effect only where it is a limit. */
const FACTORS = [256, 64, 16, 4, 2, 1.5, 1.2, 1.1, 1.05, 1.02, 1.01, 1.005, 1.002] as const
/** Sweeps with one factor at most. */
const SWEEPS = 40
/** Minimum improvement of the loss that counts. */
const LEAST_GAIN = 1e-9

export function fitted(samples: readonly TimedTerms[], from: Coefficients, options: FitOptions = {}): Fit {
  const { names = namesOf(from), hold = 1e-4 } = options
  const usable = samples.filter((s) => s.milliseconds > 0 && Number.isFinite(s.milliseconds))
  const cost = (c: Coefficients): number =>
    meanOver(usable, (s) => huber(logError(s, c))) +
    hold * names.reduce((sum, n) => sum + Math.log(c[n]! / from[n]!) ** 2, 0)

  let best: Point = { at: from, cost: cost(from) }
  const tried = (at: Coefficients): Point => ({ at, cost: cost(at) })
  const scaled = (c: Coefficients, name: CoefficientName, by: number): Coefficients => ({
    ...c,
    [name]: c[name]! * by,
  })
  const explored = (start: Point, factor: number): Point =>
    names.reduce((p, name) => {
      const sides = [tried(scaled(p.at, name, factor)), tried(scaled(p.at, name, 1 / factor))]
      return sides.reduce((a, b) => (isBetter(b, a) ? b : a), p)
    }, start)
  for (const factor of FACTORS)
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      const next = explored(best, factor)
      if (!isBetter(next, best)) break
      // As far again in the same direction: along valleys that lie across the coefficients.
      const beyond = tried(extrapolated(best.at, next.at, names))
      best = isBetter(beyond, next) ? beyond : next
    }
  return { coefficients: best.at, error: meanOver(usable, (s) => Math.abs(logError(s, best.at))) }
}

/** Zeros say that something costs nothing. */
const namesOf = (c: Coefficients): CoefficientName[] =>
  (Object.keys(c) as (keyof Coefficients)[]).flatMap((n) => (n === 'norm' || !(c[n]! > 0) ? [] : [n]))

/** Not to be told from times: how many threads run is the chip's, and caches have no one size. */
const GIVEN: ReadonlySet<CoefficientName> = new Set(['threads', 'cacheBytes'])

/** Those that times of kernels can tell. */
export const learnable = (c: Coefficients): CoefficientName[] => namesOf(c).filter((n) => !GIVEN.has(n))

interface Point {
  readonly at: Coefficients
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
  const far = Math.abs(error)
  return far <= NEAR ? far ** 2 / 2 : NEAR * (far - NEAR / 2)
}

function extrapolated(a: Coefficients, b: Coefficients, names: readonly CoefficientName[]): Coefficients {
  return { ...b, ...Object.fromEntries(names.map((n) => [n, b[n]! * (b[n]! / a[n]!)])) }
}

function meanOver(samples: readonly TimedTerms[], of: (s: TimedTerms) => number): number {
  let [sum, weights] = [0, 0]
  for (const s of samples) {
    const weight = s.weight ?? 1
    sum += weight * of(s)
    weights += weight
  }
  return weights === 0 ? 0 : sum / weights
}
