/** Coefficients are found again from times that were made of them. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { analyticTime, type Coefficients, partsOf } from '../../src/cost-model/analytic.ts'
import type { CoefficientName, TimedTerms } from '../../src/cost-model/learned/fitting.ts'
import { fitCoefficients, logError } from '../../src/cost-model/learned/fitting.ts'
import { TERM_NAMES, type Terms } from '../../src/cost-model/terms.ts'
import { costModel } from '../../src/search/ranking/cost-model.ts'
import { runs } from '../support/cases.ts'

/** Of an H100 those that every device has; the others are fitted in the same way, in more time. */
const {
  begin: _begin,
  nearCache: _nearCache,
  lines: _lines,
  conflicts: _conflicts,
  contended: _contended,
  retries: _retries,
  wave: _wave,
  hop: _hop,
  probe: _probe,
  exchange: _exchange,
  barrier: _barrier,
  miss: _miss,
  wait: _wait,
  farWait: _farWait,
  passed: _passed,
  ...everywhere
} = costModel('cuda')!.coefficients
const H100: Coefficients = everywhere
const NAMES = Object.keys(H100) as CoefficientName[]
const NONE = Object.fromEntries(TERM_NAMES.map((t) => [t, 0])) as Terms

/** A factor of at most `most` either way. */
const factor = (most: number): fc.Arbitrary<number> =>
  fc.double({ min: -Math.log(most), max: Math.log(most), noNaN: true }).map(Math.exp)

const coefficients = fc
  .tuple(...NAMES.map(() => factor(30)))
  .map((by) => Object.fromEntries(NAMES.map((n, k) => [n, H100[n]! * by[k]!])) as unknown as Coefficients)

/** What a kernel does of which one thing takes all the time, by the coefficient that says so; amounts a millisecond. */
const ALONE: Partial<Record<CoefficientName, (amount: number) => Partial<Terms>>> = {
  requests: (n) => ({ loadRequests: n * 4e9 }),
  operations: (n) => ({ operations: n * 4e10 }),
  matrix: (n) => ({ matrixOperations: n * 4e11 }),
  atomics: (n) => ({ atomicBytes: n * 2e9 }),
  exchanges: (n) => ({ exchanges: n * 4e9 }),
  searches: (n) => ({ searches: n * 1e9 }),
  shared: (n) => ({ sharedBytes: n * 2e10 }),
  step: (n) => ({ longestSteps: n * 1e5 }),
  launch: (n) => ({ launches: Math.ceil(n * 500) }),
  clear: (n) => ({ clears: Math.ceil(n * 500) }),
}
const KNOWN = Object.keys(ALONE) as CoefficientName[]

const timed = (terms: Partial<Terms>, c: Coefficients, weight?: number): TimedTerms => {
  const all = { ...NONE, ...terms }
  return { terms: all, milliseconds: analyticTime(partsOf(all, c), c), weight }
}

const amounts = fc.array(factor(20), { minLength: 5, maxLength: 8 })
const plain = (of: Coefficients, by: readonly number[]): TimedTerms[] =>
  KNOWN.flatMap((name) => by.map((n) => timed(ALONE[name]!(n), of)))

/** Several limits at a time. */
const mixed = fc.array(
  fc
    .tuple(...TERM_NAMES.map(() => factor(1e4)))
    .map((by) => Object.fromEntries(TERM_NAMES.map((t, k) => [t, by[k]! * 1e4])) as unknown as Terms),
  { minLength: 5, maxLength: 12 },
)

describe('coefficients fitted to times', () => {
  test('are recovered, if each dominates the time of some sample', () => {
    fc.assert(
      fc.property(coefficients, amounts, mixed, (truth, by, more) => {
        const samples = [...plain(truth, by), ...more.map((t) => timed(t, truth))]
        const { coefficients: found } = fitCoefficients(samples, H100)
        for (const name of KNOWN) expect(found[name]! / truth[name]!, name).toBeCloseTo(1, 1)
      }),
      { numRuns: runs(2) },
    )
  })

  test('are robust against one time in five that is ten times too long, and count by weights', () => {
    fc.assert(
      fc.property(coefficients, amounts, fc.boolean(), (truth, by, weighted) => {
        const right = plain(truth, by)
        const wrong = right.map((s, k) => {
          const bad = weighted ? k % 2 === 0 : k % 5 === 0
          return bad ? { ...s, milliseconds: s.milliseconds * 10, weight: weighted ? 0.01 : 1 } : s
        })
        const { coefficients: found } = fitCoefficients(wrong, H100)
        for (const name of KNOWN) expect(found[name]! / truth[name]!, name).toBeCloseTo(1, 1)
      }),
      { numRuns: runs(3) },
    )
  })

  test('never increase the error on the samples, and stay positive', () => {
    fc.assert(
      fc.property(
        coefficients,
        mixed,
        fc.array(factor(100), { minLength: 40, maxLength: 40 }),
        (of, terms, noise) => {
          const samples = terms.map((t, k) => {
            const s = timed(t, of)
            return { ...s, milliseconds: s.milliseconds * noise[k]! }
          })
          const huber = (e: number): number => (e <= 0.05 ? (e * e) / 2 : 0.05 * (e - 0.025))
          const cost = (c: Coefficients): number =>
            samples.reduce((sum, s) => sum + huber(Math.abs(logError(s, c))), 0)
          const { coefficients: found } = fitCoefficients(samples, H100)
          expect(cost(found)).toBeLessThanOrEqual(cost(H100) * (1 + 1e-9))
          for (const name of NAMES) expect(found[name]).toBeGreaterThan(0)
        },
      ),
      { numRuns: runs(3) },
    )
  })

  test('are unchanged if no sample depends on them, or if they are not fitted', () => {
    const truth = { ...H100, operations: H100.operations / 7, requests: H100.requests / 5 }
    const samples = [1, 2, 5].flatMap((n) => [
      timed({ operations: n * 4e10 }, truth),
      timed({ loadRequests: n * 4e9 }, truth),
    ])
    const all = fitCoefficients(samples, H100).coefficients
    for (const name of NAMES)
      if (name === 'operations' || name === 'requests') expect(all[name]! / truth[name]!).toBeCloseTo(1, 1)
      else expect(all[name]).toBe(H100[name])
    expect(fitCoefficients(samples, H100, { names: ['operations'] }).coefficients).toMatchObject({
      requests: H100.requests,
    })
    expect(fitCoefficients([], H100)).toEqual({ coefficients: H100, error: 0 })
  })
})
