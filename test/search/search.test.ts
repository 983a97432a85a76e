/** The loop around strategies: budgets, ends, and what is counted. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { search } from '../../src/search/loop/search.ts'
import type { SearchOptions, SearchProgress } from '../../src/search/loop/search-options.ts'
import { pointKey, points } from '../../src/search/spaces/points.ts'
import { STRATEGIES } from '../../src/search/strategies/index.ts'
import type { Outcome, Point, PointSpace, Trial } from '../../src/search/types.ts'
import { runs } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { drawnOutcome, landscape, measured } from './outcomes.ts'
import { drawnSpace } from './random-space.ts'

const grid = (n: number, size: number): PointSpace => ({
  name: 'grid',
  next: (partial) => {
    const k = Object.keys(partial).length
    const values = Array.from({ length: size }, (_, v) => v)
    return k < n ? { name: `p${k}`, values, ordered: true } : null
  },
})

const usual = (space: PointSpace): SearchOptions => ({
  space,
  strategy: 'random',
  evaluate: async (asked) => asked.map(({ point }) => measured(landscape(point))),
})

const refused = async (options: SearchOptions): Promise<string> => {
  try {
    await search(options)
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics[0]!.code
    throw e
  }
  return 'nothing'
}

test('the result is the best reported outcome, for every strategy, budget and outcome', async () => {
  const numbers = fc.noBias(choiceNumbers(200))
  await fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const c = new Choices(choices)
      const strategy = c.pick(Object.keys(STRATEGIES))
      const space = drawnSpace(c, true)
      const trials = 1 + c.below(12)
      const batch = 1 + c.below(4)
      const progress: SearchProgress[] = []
      const seen: Trial[] = []
      const options: SearchOptions = {
        space,
        strategy,
        trials,
        batch,
        seed: c.below(100),
        prior: (ps: readonly Point[]) => ps.map(landscape),
        onProgress: (p) => progress.push(p),
        evaluate: async (asked) =>
          asked.map(({ point, share }) => {
            const given = drawnOutcome(c)
            // A time that is none is a failure.
            const isTime =
              given.status !== 'measured' || (given.timing.median >= 0 && given.timing.median < 1 / 0)
            const outcome: Outcome = isTime
              ? given
              : { status: 'failed', code: 'search/outcomes', message: 'x' }
            seen.push({ point, outcome, share })
            return given
          }),
      }
      if (space.all.length === 0) {
        expect(await refused(options)).toBe('search/empty')
        return
      }
      const { best, rejectedByCode, failed, wrong, remaining, stopReason, ...result } = await search(options)
      const spent = seen.reduce((n, t) => n + t.share!, 0)
      const keys = new Set(seen.map((t) => pointKey(t.point)))
      if (stopReason === 'exhausted') expect(keys.size).toBe(space.all.length)
      else {
        expect(stopReason).toBe('trials')
        expect(spent).toBeGreaterThanOrEqual(trials)
      }
      expect(spent).toBeLessThan(trials + 1)
      const told = result.trials.map((t) => {
        const { outcome } = t
        const isOurs = outcome.status === 'failed' && outcome.code === 'search/outcomes'
        return { share: 1, ...t, outcome: isOurs ? { ...outcome, message: 'x' } : outcome }
      })
      expect(told).toEqual(seen)
      const of = (status: string): readonly Trial[] => seen.filter((t) => t.outcome.status === status)
      expect(failed).toBe(of('failed').length)
      expect(wrong.map((w) => w.point)).toEqual(of('wrong').map((t) => t.point))
      expect(Object.values(rejectedByCode).reduce((a, b) => a + b, 0)).toBe(of('rejected').length)
      expect(remaining).toBe(space.all.length - keys.size)
      expect(progress.at(-1)?.trialsDone ?? 0).toBe(seen.length)
      const bad = new Set(wrong.map((w) => pointKey(w.point)))
      const good = seen.filter((t) => !bad.has(pointKey(t.point)) && Number.isFinite(median(t)[0]))
      const share = Math.max(...good.map((t) => t.share!))
      const times = good.filter((t) => t.share === share).flatMap(median)
      expect(best ? median(best)[0] : undefined).toBe(times.length === 0 ? undefined : Math.min(...times))
    }),
    { numRuns: runs(150) },
  )
})

const median = ({ outcome }: Trial): readonly number[] =>
  outcome.status === 'measured' ? [outcome.timing.median] : []

test('a strategy without further points ends a search that is not exhausted', async () => {
  const space = grid(2, 2)
  for (let asked = 0; asked <= 4; asked++) {
    const given = [...points(space)].slice(0, asked)
    const strategy = { name: 'own', ask: () => given.splice(0, 1), tell: () => undefined }
    const { stopReason, remaining } = await search({ ...usual(space), strategy })
    expect([stopReason, remaining]).toEqual([asked === 4 ? 'exhausted' : 'strategy', 4 - asked])
  }
})

test('invalid outcomes are reported with their point, invalid times are failures, and points are immutable', async () => {
  const space = grid(1, 3)
  const come = (given: unknown) => refused({ ...usual(space), evaluate: async () => given as never })
  for (const given of [
    undefined,
    null,
    7,
    [],
    [null],
    ['fast'],
    [{ status: 'great' }],
    [{ status: 'rejected' }],
    [{ status: 'measured' }],
    ...[
      { median: '3' },
      { interval: [3] },
      { interval: [3, 1] },
      { interval: ['1', 1] },
      { interval: undefined },
      { median: 10, interval: [1, 2] },
      { samples: undefined },
      { samples: ['1'] },
    ].map((wrong) => [
      { status: 'measured', timing: { median: 1, interval: [1, 1], samples: [1], ...wrong } },
    ]),
  ])
    expect(await come(given)).toBe('search/outcomes')
  const median = (m: number): Outcome => ({
    status: 'measured',
    timing: { median: m, interval: [1, 1], samples: [] },
  })
  for (const given of [median(Number.NaN), median(-5), median(Number.POSITIVE_INFINITY)]) {
    const { best, failed } = await search({
      ...usual(space),
      evaluate: async (asked) => asked.map(() => given),
    })
    expect([best, failed]).toEqual([null, 3])
  }
  const changing = search({
    ...usual(space),
    evaluate: async (asked) => {
      ;(asked[0]!.point as Record<string, number>).p0 = 99
      return [measured(1)]
    },
  })
  await expect(changing).rejects.toThrow(TypeError)
})

test('a space that is too large to analyse is searched anyway', async () => {
  let asked = 0
  const wide: PointSpace = {
    name: 'wide',
    next(partial) {
      const k = Object.keys(partial).length
      const values = Array.from({ length: 1000 }, (_, v) => v)
      asked += k < 6 ? values.length : 0
      return k < 6 ? { name: `p${k}`, values, ordered: true } : null
    },
  }
  for (const strategy of ['random', 'exhaustive', 'halving']) {
    asked = 0
    const { trials } = await search({ ...usual(wide), strategy, trials: 3 })
    expect(trials.length).toBeGreaterThan(2)
    expect(asked).toBeLessThan(500_000)
  }
})

describe('ends of a search', () => {
  test('although the evaluator does not end', async () => {
    const never = () => new Promise<never>(() => {})
    const { stopReason } = await search({
      ...usual(grid(2, 3)),
      evaluate: never,
      seconds: 0.01,
      graceSeconds: 0.01,
    })
    expect(stopReason).toBe('seconds')
    // Less than the default period of grace, 30 s.
  })

  test('without improvement', async () => {
    const result = await search({ ...usual(grid(5, 9)), patience: 7, seed: 5 })
    expect(result.stopReason).toBe('patience')
    const at = result.trials.indexOf(result.best!)
    expect(result.trials).toHaveLength(at + 8)
  })

  test('by the clock, which the caller may pass', async () => {
    let now = 0
    const result = await search({
      ...usual(grid(9, 9)),
      seconds: 3,
      now: () => now,
      evaluate: async (asked) => {
        now += 500
        return asked.map(() => measured(1))
      },
    })
    expect([result.stopReason, result.trials.length, result.seconds]).toEqual(['seconds', 6, 3])
  })

  test('when the caller aborts, with the best so far and without evaluations in flight', async () => {
    const controller = new AbortController()
    let n = 0
    const result = await search({
      ...usual(grid(9, 9)),
      trials: 100,
      signal: controller.signal,
      evaluate: async (asked, { signal }) => {
        if (n++ < 5) return asked.map(({ point }) => measured(landscape(point)))
        controller.abort(new Error('enough'))
        signal.throwIfAborted()
        return []
      },
    })
    expect([result.stopReason, result.trials.length]).toEqual(['aborted', 5])
    expect(median(result.best!)[0]).toBe(Math.min(...result.trials.flatMap(median)))
    const at = AbortSignal.abort()
    expect(await search({ ...usual(grid(2, 2)), signal: at })).toMatchObject({
      stopReason: 'aborted',
      trials: [],
    })
  })

  test('at its time limit within an endless evaluation', async () => {
    const result = await search({
      ...usual(grid(9, 9)),
      seconds: 0.05,
      evaluate: (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    })
    expect([result.stopReason, result.best]).toEqual(['seconds', null])
  })

  test('when the device is lost', async () => {
    const lost: Outcome = { status: 'failed', code: 'device/lost', message: 'gone' }
    const result = await search({
      ...usual(grid(9, 9)),
      trials: 1000,
      batch: 4,
      evaluate: async (asked) => asked.map(() => lost),
    })
    expect([result.stopReason, result.failed]).toEqual(['device', 4])
  })

  test('with the error of an unrecoverable evaluation', async () => {
    const evaluate = async (): Promise<never> => {
      throw new Error('no kernel')
    }
    await expect(search({ ...usual(grid(2, 2)), evaluate })).rejects.toThrow('no kernel')
    // What came before it is told.
    let last: SearchProgress | undefined
    const breaking = search({
      ...usual(grid(2, 2)),
      batch: 3,
      onProgress: (p) => {
        last = p
      },
      evaluate: async (_, { report }) => {
        report!(1, measured(7))
        throw new Error('no worker')
      },
    })
    await expect(breaking).rejects.toThrow('no worker')
    expect(last).toMatchObject({ trialsDone: 1, best: { outcome: measured(7) } })
    expect(await refused({ ...usual(grid(2, 2)), evaluate: async () => [] })).toBe('search/outcomes')
  })
})

test('a wrong result disqualifies its point permanently, and is reported as a bug', async () => {
  const space = grid(1, 3)
  const bug: Outcome = { status: 'wrong', message: 'C differs', trace: 'split i', seed: 7 }
  const known: Trial[] = [
    { point: { p0: 1 }, outcome: measured(0.1) },
    { point: { p0: 1 }, outcome: bug },
    { point: { p0: 1 }, outcome: measured(0.1) },
  ]
  const result = await search({ ...usual(space), knownTrials: known })
  expect(result.stopReason).toBe('exhausted')
  expect(result.best!.point).not.toEqual({ p0: 1 })
  expect(result.wrong).toEqual([
    { space: 'grid', point: { p0: 1 }, message: 'C differs', trace: 'split i', seed: 7 },
  ])
})

test('continues an earlier search', async () => {
  const space = grid(3, 4)
  const first = await search({ ...usual(space), trials: 20 })
  const second = await search({
    ...usual(space),
    strategy: 'surrogate',
    trials: 20,
    knownTrials: first.trials,
  })
  const keys = second.trials.map((t) => pointKey(t.point))
  expect([keys.length, new Set(keys).size, second.remaining]).toEqual([40, 40, 24])
  const all = await search({ ...usual(space), strategy: 'exhaustive', knownTrials: second.trials })
  const least = Math.min(...[...points(space)].map(landscape))
  expect([all.stopReason, ...median(all.best!)]).toEqual(['exhausted', least])
})

test.each<[string, Partial<SearchOptions>]>([
  ['search/budget', { trials: 0 }],
  ['search/budget', { trials: Number.NaN }],
  ['search/budget', { trials: 2.5 }],
  ['search/budget', { seconds: 0 }],
  ['search/budget', { seconds: Number.NaN }],
  ['search/budget', { patience: -1 }],
  ['search/budget', { batch: 0 }],
  ['search/budget', { space: grid(9, 10) }],
  ['search/seed', { seed: 0.5 }],
  ['search/strategy', { strategy: 'greedy' }],
  ['search/empty', { space: { name: 'none', next: () => ({ name: 'a', values: [], ordered: true }) } }],
  ['api/unknown-option', { trails: 3 } as Partial<SearchOptions>],
  ['api/argument', { space: {} as PointSpace }],
])('rejects with %s: %o', async (code, options) => {
  expect(await refused({ ...usual(grid(2, 2)), ...options })).toBe(code)
})
