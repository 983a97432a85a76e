/** Searches that are ended: nothing is run any more, and what came of points until then is kept. Outliers decide nothing. */
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { coords, load } from '../../src/node.ts'
import type { Evaluator } from '../../src/search/evaluate/evaluator.ts'
import { search } from '../../src/search/loop/search.ts'
import { warmRuns } from '../../src/search/measuring/measure-rounds.ts'
import { openRecords } from '../../src/search/records/index.ts'
import { space } from '../../src/search/spaces/function-space.ts'
import { compareKernels, rejectIfSlow, slowKernels } from '../../src/search/tune/finals/finals.ts'
import { tune } from '../../src/search/tune/index.ts'
import type { Outcome } from '../../src/search/types.ts'
import { runs } from '../support/cases.ts'
import { PointEvaluator } from '../support/point-evaluator.ts'
import { PRODUCT } from '../support/product.ts'
import { property } from '../support/property.ts'
import { simulatedDevice, withSimulatedTimers } from '../support/simulated-device.ts'

const kernel = (await load(`import "sparsetile/kernels/formats.spt"\n${PRODUCT}`)).kernel('product')
const A = coords(
  [6, 5],
  [
    [0, 1, 1, 4],
    [2, 0, 3, 4],
  ],
  [1, 2, 3, 4],
)
const inputs = { tensors: { A }, params: { d: 4 }, seed: 3 }
const SCHEDULES = {
  missing: () => kernel.split('nowhere', 2),
  plain: () => kernel,
  halves: () => kernel.split('f', 2),
  blocks: () => kernel.as('A', 'bsr', 2),
}
const candidates = space('candidates', kernel, (p) =>
  p.pick(
    'schedule',
    Object.fromEntries(Object.entries(SCHEDULES).map(([name, made]) => [name, () => made()])),
  ),
)
const asked = Object.keys(SCHEDULES).map((schedule) => ({ point: { schedule }, share: 1 }))

const open: Evaluator[] = []
afterEach(() => {
  for (const e of open.splice(0)) e.close()
})

type At = (runs: number, settled: ReadonlyMap<number, Outcome>) => boolean

/** What runs say they take, where that is to decide nothing: two are measured together, and none is hopeless. */
const ALIKE = 500

/** Everything until a run at which it is aborted; `runs`: those that were begun. */
async function until(isAt: At) {
  const stop = new AbortController()
  const settled = new Map<number, Outcome>()
  let runs = 0
  const device = await simulatedDevice({
    before() {
      runs++
      if (isAt(runs, settled)) stop.abort(new Error('enough'))
    },
    ms: () => ALIKE,
  })
  const e = new PointEvaluator({ space: candidates, kernel, inputs, device, rounds: 2, seconds: 60 })
  open.push(e)
  const settle = (at: number, o: Outcome): void => void settled.set(at, o)
  const outcomes = await e
    .points(asked, { signal: stop.signal, report: settle })
    .catch((why: Error) => why.message)
  return { runs, settled, outcomes }
}

describe('an abort', async () => {
  const whole = await until(() => false)

  test('without effect: all outcomes are recorded', () => {
    expect(whole.outcomes).toEqual(asked.map((_, k) => whole.settled.get(k)))
    expect(whole.settled.get(0)).toMatchObject({ status: 'rejected' })
  })

  property([fc.integer({ min: 1, max: 25 })], { numRuns: runs(6) })(
    'takes effect before the next run, and settled outcomes are kept',
    async (run) => {
      const { runs, settled, outcomes } = await until((runs) => runs === run)
      expect([outcomes, runs]).toEqual(['enough', run])
      expect(settled.get(0)).toEqual(whole.settled.get(0))
    },
  )

  test('in the second group of formats keeps the measurements of the first', async () => {
    const { settled } = await until((_, settled) => settled.has(2))
    expect([...settled].map(([k, o]) => [k, o.status])).toEqual([
      [0, 'rejected'],
      [1, 'measured'],
      [2, 'measured'],
    ])
  })
})

test('outcomes before an abort are part of the result', async () => {
  const stop = new AbortController()
  const timing = { median: 2, interval: [2, 2] as const, samples: [2] }
  const { trials, best, stopReason } = await search({
    space: candidates,
    strategy: 'exhaustive',
    batch: 4,
    signal: stop.signal,
    async evaluate(_, { report, signal }) {
      report!(2, { status: 'measured', timing })
      stop.abort()
      throw signal.reason
    },
  })
  expect([trials.map((t) => t.point), best?.point, stopReason]).toEqual([
    [{ schedule: 'halves' }],
    { schedule: 'halves' },
    'aborted',
  ])
})

test('trials are recorded before the next are measured', async () => {
  const records = await openRecords(':memory:')
  const kept: number[] = []
  const device = await simulatedDevice({
    before: () => void kept.push(records.query().length),
    ms: () => ALIKE,
  })
  await tune(kernel, { space: candidates, inputs, device, strategy: 'exhaustive', records, trials: 4 })
  // One is refused at once, two are measured together unless they take long, and one of another format after them.
  expect(kept[0]).toBe(1)
  expect(kept).toContain(3)
  expect(kept.at(-1)).toBe(4)
  records.close()
})

test('without time for a final comparison, the best so far is the measured best', async () => {
  const stop = new AbortController()
  const device = await simulatedDevice({ ms: () => 300 })
  const found = await withSimulatedTimers(() =>
    tune(kernel, {
      space: candidates,
      inputs,
      device,
      strategy: 'exhaustive',
      signal: stop.signal,
      onProgress(p) {
        if (p.trialsDone > 0) stop.abort()
      },
    }),
  )
  const codes = found.finalists.map((f) => [f.name, 'code' in f.outcome ? f.outcome.code : f.outcome.status])
  expect(codes.filter(([, o]) => o === 'measured').length).toBeGreaterThanOrEqual(3)
  expect(Object.fromEntries(codes)).toMatchObject({ 'point 1': 'measured', unscheduled: 'search/ended' })
  const searched = found.trials.map((t) => t.outcome)
  expect(searched).toContainEqual(found.best?.outcome)
})

describe('an outlier', () => {
  const time = fc.double({ min: 1, max: 1.4, noNaN: true })
  const alike = fc.array(fc.array(time, { minLength: 1, maxLength: 8 }), { minLength: 2, maxLength: 6 })

  property([alike, fc.nat(), fc.nat(), fc.double({ min: 10, max: 1e6, noNaN: true })])(
    'eliminates no finalist',
    (samples, who, which, ms) => {
      const of = samples[who % samples.length]!
      of[which % of.length] = ms
      expect(slowKernels(samples)).toEqual([])
    },
  )

  test('but repeatedly slower finalists are eliminated', () => {
    expect(slowKernels([[1, 1.1], [1.7, 1.8], [9]])).toEqual([1])
  })

  test('eliminated finalists are not run again, and their outcome covers the passes until then', async () => {
    // A kernel takes twice as long as the one that was timed before it.
    const e = new PointEvaluator({ space: candidates, kernel, inputs, device: await simulatedDevice() })
    open.push(e)
    const turns = [0, 0]
    const outcomes = await compareKernels(e, [{ kernel }, { kernel: kernel.split('f', 2) }], {
      seed: 1,
      onTurn: (k) => void turns[k]!++,
    })
    expect(turns[0]).toBe(4)
    expect(turns[1]).toBeLessThan(4)
    expect(outcomes.map((o) => o?.status)).toEqual(['measured', 'measured'])
  })
})

describe('a candidate', async () => {
  /** One with told times, in a bench whose fastest so far took `LEAST` ms. */
  const LEAST = 2
  async function benched(ran: number, times: readonly number[]) {
    const device = await simulatedDevice({ ms: () => LEAST })
    const e = new PointEvaluator({ space: candidates, kernel, inputs, device, rounds: 2, seconds: 60 })
    open.push(e)
    await e.points(asked.slice(1, 2))
    let runs = 0
    const taking = {
      time: async () => [times[Math.min(runs++, times.length - 1)]!],
      verifyAgainst: async () => ({ ok: true, maxRelativeError: 0, sampled: null, runTime: ran }),
      executable: { bytes: 0, program: { plan: { steps: [] } } },
      free() {},
    } as never
    e.bench.data.bind = async () => taking
    const checked = await e.bench.verify({} as never, 'one')
    if (!('prepared' in checked)) throw new Error('not right')
    return { outcome: await e.bench.warmUp(checked.prepared), runs }
  }

  // Runs that the host compiles meanwhile, as they were recorded: 1.4, 1.2 and 0.8 ms when it has.
  const COLD = [
    [17.4, 11.6, 1.4, 2.8, 1.4],
    [61.8, 6.2, 11.2, 1.6, 1.2],
    [54.3, 18.1, 10.6, 5.3, 3.7, 11.6, 1.2, 0.8],
  ]
  test.each(COLD)('with cold first runs is not eliminated', async (...times) => {
    expect(await benched(50, times)).toMatchObject({ outcome: null })
  })

  property([
    fc.array(fc.double({ min: 1.2, max: 5, noNaN: true }), { maxLength: 7 }),
    fc.double({ min: 0.01, max: 400, noNaN: true }),
  ])('is warm when its times no longer fall', async (falls, warm) => {
    const times = [warm]
    for (const f of falls) times.unshift(f * times[0]!)
    let runs = 0
    const steady = await warmRuns(async () => times[Math.min(runs++, times.length - 1)]!)
    expect(steady.length).toBeGreaterThan(1)
    expect(Math.max(...steady)).toBeLessThanOrEqual(warm / 0.9)
    expect(runs).toBeLessThanOrEqual(times.length + 301)
  })

  test('far from the fastest is measured by its warm runs alone', async () => {
    const { outcome } = await benched(1, [90, 30, 7, 6.9, 7.1, 7])
    const timing = outcome?.status === 'measured' ? outcome.timing : null
    expect(timing).toMatchObject({ median: 7, interval: [7, 7] })
    expect(Math.max(...timing!.samples)).toBe(7.1)
  })

  test('that is eliminated early is measured by its warm runs too', async () => {
    let ms = 4
    const device = await simulatedDevice({ ms: () => ms })
    // Its time is over after the first round.
    const e = new PointEvaluator({ space: candidates, kernel, inputs, device, seconds: 1e-9 })
    open.push(e)
    const checked = await e.bench.verify(await e.compile(kernel), 'one')
    if (!('prepared' in checked)) throw new Error('not right')
    expect(await e.bench.warmUp(checked.prepared)).toBe(null)
    ms = 90
    const [outcome] = await e.bench.measure([checked.prepared], 1)
    expect(outcome).toMatchObject({ timing: { median: 4, samples: expect.arrayContaining([90, 4]) } })
    checked.prepared.free()
  })

  test('that takes seconds is not run again, and its time is a bound', async () => {
    expect(await benched(6000, [5000])).toEqual({ outcome: { status: 'bounded', atMost: 6000 }, runs: 0 })
    expect(await benched(600, [5000])).toMatchObject({ outcome: { timing: { samples: [5000, 5000] } } })
  })
})

describe('dense schedules', () => {
  property([fc.double({ min: 1, max: 1e6, noNaN: true }), fc.double({ min: 1e-3, max: 1e5, noNaN: true })])(
    'are skipped if a run would be long and far from the fastest',
    (filled, least) => {
      const isFar = filled > 20 && filled * least > 100
      expect(rejectIfSlow({ expansion: filled }, least)).toEqual(
        isFar ? expect.objectContaining({ code: 'search/far-slower' }) : null,
      )
      expect(rejectIfSlow({ expansion: filled }, Number.POSITIVE_INFINITY)).toBe(null)
      expect(rejectIfSlow({}, least)).toBe(null)
    },
  )

  test('are not run on mostly empty tensors, which is reported; others are named when compared', async () => {
    const n = 8000
    const diagonal = Int32Array.from({ length: n }, (_, k) => k)
    const large = coords([n, n], [diagonal, diagonal], new Float32Array(n).fill(1))
    const device = await simulatedDevice()
    const named: (string | undefined)[] = []
    const found = await tune(kernel, {
      space: candidates,
      inputs: { ...inputs, tensors: { A: large } },
      device,
      trials: 4,
      onProgress: (p) => void named.push(p.comparing),
    })
    const dense = found.finalists.find((f) => f.name === 'A dense')
    expect(dense?.outcome).toMatchObject({ status: 'rejected', code: 'search/far-slower' })
    expect(named).not.toContain('A dense')
    expect(named).toEqual(expect.arrayContaining([undefined, 'point 1', 'default', 'unscheduled']))
  })
})

test('the final comparison is bounded by the time limit', async () => {
  const device = await simulatedDevice({ ms: () => 200 })
  const turns: string[] = []
  const found = await withSimulatedTimers(() =>
    tune(kernel, {
      space: candidates,
      inputs,
      device,
      trials: 4,
      seconds: 1,
      onProgress(p) {
        if (p.comparing !== undefined) turns.push(p.comparing)
      },
    }),
  )
  const outcomes = found.finalists.map((f) => f.outcome)
  expect(outcomes).toContainEqual(expect.objectContaining({ status: 'measured' }))
  // Not all have had all of their turns.
  expect(turns.length).toBeLessThan(4 * found.finalists.length)
})
