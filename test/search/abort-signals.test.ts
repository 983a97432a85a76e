/** A signal is heard while points are counted, drawn, ranked and told. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { search } from '../../src/search/loop/search.ts'
import { STRATEGIES } from '../../src/search/strategies/index.ts'
import type { Outcome, Point, PointSpace, Trial } from '../../src/search/types.ts'
import { runs } from '../support/cases.ts'

/** Longer than there are turns of events apart. */
function burn(): void {
  const start = performance.now()
  while (performance.now() - start < 22);
}

const VALUES = [0, 1, 2, 3, 4, 5, 6, 7]
const NAMES = ['a', 'b', 'c', 'd']

/** Of 4,096 points, where the question number `at` has the signal abort, and each after it is counted. */
function slow(at: number) {
  const stop = new AbortController()
  let [asked, after] = [0, 0]
  const question = (): void => {
    if (stop.signal.aborted) after++
    if (asked++ >= at) burn()
    if (asked === at + 1) setImmediate(() => stop.abort())
  }
  const space: PointSpace = {
    name: 'slow',
    next(partial) {
      question()
      const name = NAMES.find((n) => !Object.hasOwn(partial, n))
      return name === undefined ? null : { name, values: VALUES, ordered: true }
    },
  }
  return { space, question, signal: stop.signal, after: () => after }
}

const outcome = (point: Point): Outcome => {
  const median = 1 + Object.values(point).reduce<number>((n, v) => n + Number(v), 0)
  return { status: 'measured', timing: { median, interval: [median, median], samples: [median] } }
}

const known: Trial[] = [1, 2, 3, 4, 5, 6].map((a) => {
  const point = { a, b: a, c: 0, d: 7 - a }
  return { point, outcome: outcome(point) }
})

test('after an abort, a search calls its space and prior at most once', async () => {
  const cases = fc.record({
    strategy: fc.constantFrom(...Object.keys(STRATEGIES)),
    at: fc.nat(2500),
    isKnown: fc.boolean(),
    isPrior: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(cases, async ({ strategy, at, isKnown, isPrior }) => {
      const { space, question, signal, after } = slow(at)
      const prior = (points: readonly Point[]): readonly number[] =>
        points.map((p) => {
          question()
          return Number(p.a) + Number(p.d)
        })
      const result = await search({
        space,
        strategy,
        evaluate: async (all) => all.map((a) => outcome(a.point)),
        trials: 40,
        batch: 8,
        knownTrials: isKnown ? known : [],
        ...(isPrior || strategy === 'model' ? { prior } : {}),
        signal,
      })
      expect(['aborted', 'trials']).toContain(result.stopReason)
      expect(after()).toBeLessThanOrEqual(1)
      if (isKnown) expect(result.best).not.toBeNull()
    }),
    { numRuns: runs(30) },
  )
})
