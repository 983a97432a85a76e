/** What a device does at most, as the cost model takes it, put near what was measured. */
import type { Coefficients } from '../../src/search/model/analytic.ts'
import { type CoefficientName, fitted, type TimedTerms } from '../../src/search/model/fitting.ts'

/** Of an H100, in milliseconds and amounts a millisecond, by its data sheet and by trying. */
const H100: Coefficients = {
  launch: 0.0022,
  clear: 0.0018,
  memory: 2.6e9,
  cache: 5.5e9,
  cacheBytes: 50e6,
  requests: 4e9,
  operations: 45e9,
  matrix: 400e9,
  atomics: 2.5e9,
  latency: 0.0009,
  step: 8e-6,
  threads: 132 * 1536,
  exchanges: 4e9,
  searches: 1e9,
  shared: 2e10,
}

/** All but what is no rate of work. */
const NAMES = (Object.keys(H100) as CoefficientName[]).filter((n) => n !== 'cacheBytes' && n !== 'threads')
/** So many samples tell as much as all of them. */
const MOST = 1500

/** Of a chip like an H100, whatever its queue adds; the same from the same samples in the same order. */
export function coefficientsOf(samples: readonly TimedTerms[]): Coefficients {
  const stride = Math.ceil(samples.length / MOST)
  const { coefficients } = fitted(
    samples.filter((_, k) => k % stride === 0),
    H100,
    { names: NAMES },
  )
  const rounded = Object.entries(coefficients).map(([name, c]) => [name, Number(c.toPrecision(5))])
  return Object.fromEntries(rounded) as unknown as Coefficients
}
