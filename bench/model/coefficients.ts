/** What a device does at most, as the cost model takes it, put near what was measured. */

import type { Coefficients } from '../../src/cost-model/analytic.ts'
import type { CoefficientName, TimedTerms } from '../../src/cost-model/learned/fitting.ts'
import { fitCoefficients } from '../../src/cost-model/learned/fitting.ts'
import type { DeviceKind } from '../../src/runtime/device.ts'

/** Of an H100, in milliseconds and amounts a millisecond, by its data sheet and by trying. */
const H100: Coefficients = {
  begin: 3e-3,
  launch: 3e-5,
  clear: 1.3e-3,
  memory: 2.5e9,
  cache: 15e9,
  nearCache: 40e9,
  cacheBytes: 50e6,
  requests: 16e9,
  lines: 0.43e9,
  operations: 22e9,
  matrix: 400e9,
  atomics: 1.2e9,
  conflicts: 0.1e9,
  contended: 0.56e6,
  retries: 1e9,
  latency: 3.6e-5,
  wave: 1.4e-3,
  hop: 9e-5,
  probe: 2e-4,
  exchange: 6e-6,
  barrier: 2e-4,
  miss: 1.7e-5,
  wait: 2.7e-5,
  farWait: 2.5e-4,
  step: 5e-7,
  threads: 132 * 2048,
  exchanges: 1.9e9,
  passed: 0.16e9,
  searches: 1e11,
  shared: 2e10,
}

/** Where updates of floats are loops of compare and swap: a round trip for each of one element, or as long as all take that try. */
const LOOPS: Partial<Coefficients> = { atomics: 0.2e9, conflicts: 2e7, contended: 1.6e3, retries: 1e5 }

/** All but what is no rate of work. */
const NAMES = (Object.keys(H100) as CoefficientName[]).filter((n) => n !== 'cacheBytes' && n !== 'threads')
/** So many samples tell as much as all of them. */
const MOST = 1500

/** Of a chip like an H100, whatever its queue adds; the same from the same samples in the same order. */
export function coefficientsOf(samples: readonly TimedTerms[], kind: DeviceKind): Coefficients {
  const from = kind === 'webgpu' ? { ...H100, ...LOOPS } : H100
  const stride = Math.ceil(samples.length / MOST)
  const { coefficients } = fitCoefficients(
    samples.filter((_, k) => k % stride === 0),
    from,
    { names: NAMES },
  )
  const rounded = Object.entries(coefficients).map(([name, c]) => [name, Number(c.toPrecision(5))])
  return Object.fromEntries(rounded) as unknown as Coefficients
}
