/** Medians with confidence intervals from order statistics, for any distribution. */
import type { Timing } from '../types.ts'

/** Confidence level of the interval of a reported median. */
export const CONFIDENCE = 0.95

export interface MedianInterval {
  readonly median: number
  readonly low: number
  readonly high: number
  /** Actual confidence level: lower than requested if there are too few samples. */
  readonly confidence: number
}

/**
 * @param samples - Independent samples of one distribution, at least one
 * @param confidence - In (0, 1); 0.95 requires 6 samples, 0.99 requires 8
 */
export function medianInterval(samples: readonly number[], confidence = CONFIDENCE): MedianInterval {
  const sorted = samples.toSorted((a, b) => a - b)
  const n = sorted.length
  const middle = n >> 1
  const median = n % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
  const { rank, outside } = rankOf(n, confidence)
  return {
    median,
    low: Math.min(sorted[rank]!, median),
    high: Math.max(sorted[n - 1 - rank]!, median),
    confidence: 1 - 2 * outside,
  }
}

/** The innermost ranks with sufficient confidence, or the first and last; probability outside of one. */
function rankOf(n: number, confidence: number): { readonly rank: number; readonly outside: number } {
  // Probability that fewer than k of n samples are below the median: a binomial tail, in logarithms to avoid underflow.
  let logTerm = -n * Math.LN2
  let tail = Math.exp(logTerm)
  let best = { rank: 0, outside: Math.min(0.5, tail) }
  for (let k = 1; k <= (n - 1) / 2; k++) {
    logTerm += Math.log((n - k + 1) / k)
    tail += Math.exp(logTerm)
    if (2 * tail > 1 - confidence) break
    best = { rank: k, outside: tail }
  }
  return best
}

/** @param samples milliseconds, at least one */
export function summarizeSamples(samples: readonly number[], confidence = CONFIDENCE): Timing {
  const { median, low, high } = medianInterval(samples, confidence)
  return { median, interval: samples.length > 1 ? [low, high] : null, samples }
}
