/** Measuring against simulated devices: no test depends on real time. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { fail, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Command, Device, Graph } from '../../src/runtime/device.ts'
import { MAX_DRIFT, References } from '../../src/search/measuring/drift.ts'
import { measureRounds } from '../../src/search/measuring/measure-rounds.ts'
import { medianInterval, summarizeSamples } from '../../src/search/measuring/median-interval.ts'
import { measureInRounds, type Sampler } from '../../src/search/measuring/rounds.ts'
import type { Outcome, Timing } from '../../src/search/types.ts'
import { runs } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'

/** Samples around a median of 1, by a number in [0, 1). */
const NOISE: Readonly<Record<string, (u: number) => number>> = {
  exponential: (u) => -Math.log(1 - u) / Math.LN2,
  uniform: (u) => 2 * u,
  // A tenth of the runs is disturbed.
  outliers: (u) => (u < 0.9 ? 0.9 + (u * 0.2) / 0.999 : 5 + u),
}
const medianOf: Readonly<Record<string, number>> = {
  exponential: 1,
  uniform: 1,
  outliers: 0.9 + (0.5 * 0.2) / 0.999,
}

const timing = (outcome: Outcome | undefined): Timing => {
  if (outcome?.status !== 'measured') throw new Error(`not measured: ${JSON.stringify(outcome)}`)
  return outcome.timing
}

describe('intervals of medians', () => {
  test.each(Object.keys(NOISE))('contain the true median with the stated confidence: %s', (name) => {
    const random = new Random(77)
    const TIMES = 4000
    for (const n of [3, 6, 8, 21, 50])
      for (const confidence of [0.8, 0.95]) {
        let held = 0
        let reached = 0
        for (let k = 0; k < TIMES; k++) {
          const samples = Array.from({ length: n }, () => NOISE[name]!(random.next()))
          const { low, high, confidence: said } = medianInterval(samples, confidence)
          if (low <= medianOf[name]! && medianOf[name]! <= high) held++
          reached = said
        }
        // What was asked for, where there are samples enough, and not much more.
        if (n >= 6) expect(reached).toBeGreaterThanOrEqual(confidence)
        expect(Math.abs(held / TIMES - reached)).toBeLessThan(4 * Math.sqrt(0.25 / TIMES))
      }
  })

  test('consist of samples around the median, and are the narrowest with sufficient confidence', () => {
    const samples = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(samples, fc.double({ min: 0.5, max: 0.999, noNaN: true }), (xs, confidence) => {
        const { median, low, high, confidence: reached } = medianInterval(xs, confidence)
        const sorted = xs.toSorted((a, b) => a - b)
        expect(low <= median && median <= high).toBe(true)
        expect(sorted.filter((x) => x < median).length).toBeLessThanOrEqual(xs.length / 2)
        if (reached < confidence) expect([low, high]).toEqual([sorted[0], sorted.at(-1)])
        // Sums of the binomial distribution.
        const tail = (k: number): number => {
          let [term, sum] = [2 ** -xs.length, 0]
          for (let i = 0; i <= k; i++) {
            sum += term
            term *= (xs.length - i) / (i + 1)
          }
          return sum
        }
        const rank =
          xs.length === 1
            ? 0
            : Math.max(
                0,
                sorted.findIndex((x) => x >= low),
              )
        if (new Set(xs).size === xs.length && xs.length > 2) {
          expect(reached).toBeCloseTo(1 - 2 * tail(rank), 9)
          // One rank further in would not be sure enough.
          if (rank + 1 <= (xs.length - 1) / 2 && reached >= confidence)
            expect(1 - 2 * tail(rank + 1)).toBeLessThan(confidence)
        }
      }),
      { numRuns: runs(200) },
    )
    expect([summarizeSamples([3]).interval, summarizeSamples([3, 4]).interval]).toEqual([null, [3, 4]])
    expect(medianInterval(Array.from({ length: 5000 }, (_, k) => k)).median).toBe(2499.5)
    expect(medianInterval(Array.from({ length: 5000 }, (_, k) => k)).confidence).toBeCloseTo(0.95, 2)
  })
})

/** A device whose speed is `speed` at each sample, and what takes `ms` on it, but for noise. */
class Simulated {
  readonly random: Random
  readonly log: number[] = []
  readonly speed: (sample: number) => number
  #samples = 0

  constructor(seed: number, speed: (sample: number) => number = () => 1) {
    this.random = new Random(seed)
    this.speed = speed
  }

  timed(name: number, ms: number, noise = 0.02): Sampler {
    return {
      sample: async () => {
        this.log.push(name)
        return ms * this.speed(this.#samples++) * (1 + noise * this.random.normal())
      },
    }
  }
}

describe('iterations', () => {
  test('find the fastest, with few samples for slower ones', async () => {
    let hits = 0
    const TIMES = 40
    for (let seed = 1; seed <= TIMES; seed++) {
      const device = new Simulated(seed)
      const ms = [1.6, 1.15, 1, 1.04, 3, 1.3, 9, 1.1].map((t) => t * (1 + device.random.next() * 0.005))
      const { outcomes, exitReasons } = await measureInRounds(
        ms.map((t, k) => device.timed(k, t)),
        { seed, width: 0 },
      )
      const medians = outcomes.map((o) => timing(o).median)
      if (medians.indexOf(Math.min(...medians)) === 2) hits++
      const samples = outcomes.map((o) => timing(o).samples.length)
      expect(exitReasons[2]).toBe('rounds')
      expect([exitReasons[6], exitReasons[4], exitReasons[0], exitReasons[5]]).toEqual([
        'slower',
        'slower',
        'slower',
        'slower',
      ])
      expect([samples[6], samples[4]]).toEqual([3, 3])
      expect(samples[5]).toBeLessThan(16)
    }
    expect(hits).toBe(TIMES)
  })

  test('candidates slower than an earlier best are eliminated after few samples', async () => {
    const device = new Simulated(3)
    const timed = (): Sampler[] => [
      device.timed(0, 2, 0.01),
      device.timed(1, 1.3, 0.01),
      device.timed(2, 1, 0.01),
    ]
    const { outcomes, exitReasons } = await measureInRounds(timed().slice(0, 2), {
      width: 0,
      rounds: 30,
      fastest: 1,
    })
    expect(exitReasons).toEqual(['slower', 'slower'])
    expect(outcomes.map((o) => timing(o).samples.length)).toEqual([3, 8])
    const near = await measureInRounds(timed().slice(2), { width: 0, rounds: 30, fastest: 1 })
    expect(near.exitReasons).toEqual(['rounds'])
    const all = await measureInRounds(timed().slice(0, 2), { width: 0, rounds: 30, fastest: 1, all: true })
    expect(all.exitReasons).toEqual(['rounds', 'rounds'])
  })

  test('end for candidates with sufficient precision', async () => {
    const device = new Simulated(5)
    const { outcomes, exitReasons } = await measureInRounds(
      [device.timed(0, 1, 0.001), device.timed(1, 1, 0.2)],
      {
        width: 0.01,
      },
    )
    expect(exitReasons).toEqual(['narrow', 'rounds'])
    expect(timing(outcomes[0]).samples).toHaveLength(6)
  })

  test('take one sample of each per round, in random order', async () => {
    const numbers = fc.noBias(choiceNumbers(60))
    await fc.assert(
      fc.asyncProperty(numbers, async (choices) => {
        const c = new Choices(choices)
        const n = 1 + c.below(20)
        const device = new Simulated(c.below(1000))
        const rounds = 1 + c.below(12)
        const reference = c.below(2) === 0 ? device.timed(-1, 1) : undefined
        const timed = Array.from({ length: n }, (_, k) =>
          device.timed(k, 1 + c.below(4), c.pick([0, 0.01, 0.5])),
        )
        const { outcomes, exitReasons, drift } = await measureInRounds(
          timed,
          { rounds, seed: c.below(9) },
          reference,
        )
        const samples = outcomes.map((o) => timing(o).samples.length)
        for (const [k, s] of samples.entries()) {
          expect(s).toBe(device.log.filter((x) => x === k).length)
          expect(exitReasons[k] === 'rounds' ? s : Math.max(1, Math.min(s, rounds))).toBe(
            exitReasons[k] === 'rounds' ? rounds : s,
          )
        }
        // Round by round: those that have more samples than there were rounds.
        const order = device.log.filter((k) => k >= 0)
        let at = 0
        for (let round = 0; round < rounds; round++) {
          const active = samples.flatMap((s, k) => (s > round ? [k] : []))
          expect(order.slice(at, at + active.length).sort((a, b) => a - b)).toEqual(active)
          at += active.length
        }
        expect(at).toBe(order.length)
        expect(drift?.samples.length ?? 0).toBe(device.log.length - order.length)
      }),
      { numRuns: runs(60) },
    )
  })

  test('correct by at most a factor of two, whatever delayed the reference', () => {
    const reference = fc.array(fc.double({ min: 1e-6, max: 1e6, noNaN: true }), {
      minLength: 1,
      maxLength: 12,
    })
    const bounded = fc.property(reference, (times) => {
      const references = new References()
      for (const t of times) references.add(t)
      for (const f of references.factors([...times.keys(), times.length]))
        expect(f >= 1 / MAX_DRIFT && f <= MAX_DRIFT).toBe(true)
    })
    fc.assert(bounded, { numRuns: runs(60) })
  })

  test('correct by the median of two references before and two after a sample, relative to all', () => {
    const middle = (xs: readonly number[]): number => {
      const sorted = xs.toSorted((a, b) => a - b)
      const half = sorted.length >> 1
      return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
    }
    const around = fc.property(
      fc.array(
        fc.oneof(
          fc.double({ min: 0.95, max: 1.05, noNaN: true }),
          fc.double({ min: 0.2, max: 5, noNaN: true }),
        ),
        {
          minLength: 1,
          maxLength: 20,
        },
      ),
      fc.array(fc.nat(19), { minLength: 1, maxLength: 30 }),
      (times, places) => {
        const references = new References()
        for (const t of times) references.add(t)
        const before = places.map((p) => Math.min(p, times.length))
        const expected = before.map((p) => {
          const near = middle(times.slice(Math.max(0, p - 2), p + 2)) / middle(times)
          return Math.abs(near - 1) <= 0.03 ? 1 : Math.min(MAX_DRIFT, Math.max(1 / MAX_DRIFT, near))
        })
        expect(references.factors(before)).toEqual(expected)
        const { disturbed, slowest } = references.drift(before)
        expect(disturbed).toBeCloseTo(expected.filter((f) => f !== 1).length / before.length, 9)
        expect(slowest).toBe(Math.max(1, ...expected))
      },
    )
    fc.assert(around, { numRuns: runs(100) })
  })

  test('compensate device drift by the reference', async () => {
    // Throttled by a half for a while, and a neighbour now and then.
    const speed = (k: number): number => (k > 60 && k < 130 ? 1.5 : 1) * (k % 37 === 0 ? 1.4 : 1)
    const off: number[] = []
    for (let seed = 1; seed <= 10; seed++) {
      const device = new Simulated(seed, speed)
      const timed = [1, 1.2, 1.02, 1.01, 1.03].map((ms, k) => device.timed(k, ms, 0.01))
      const { outcomes, drift } = await measureInRounds(
        timed,
        { width: 0, seed },
        device.timed(-1, 0.5, 0.01),
      )
      const [first, ...others] = outcomes.map((o) => timing(o).median)
      for (const [k, ms] of [1.2, 1.02, 1.01, 1.03].entries())
        off.push(Math.abs(others[k]! / first! / ms - 1))
      expect(drift!.disturbed).toBeGreaterThan(0.1)
      expect(drift!.slowest).toBeGreaterThan(1.4)
    }
    expect(Math.max(...off)).toBeLessThan(0.015)
    const calm = new Simulated(3)
    const { drift } = await measureInRounds([calm.timed(0, 1), calm.timed(1, 1)], {}, calm.timed(-1, 1, 0.01))
    expect([drift!.disturbed, drift!.slowest]).toEqual([0, 1])
  })

  test('a step in device speed is not hidden by a single median', async () => {
    // Slow for the first half: what is out by then would seem slow for ever.
    const of = async (withReference: boolean): Promise<number> => {
      const device = new Simulated(8, (k) => (k < (withReference ? 60 : 30) ? 2 : 1))
      const timed = [device.timed(0, 1, 0.005), device.timed(1, 1.3, 0.005)]
      const { outcomes } = await measureInRounds(
        timed,
        { width: 0 },
        withReference ? device.timed(-1, 1, 0.005) : undefined,
      )
      return timing(outcomes[1]).median / timing(outcomes[0]).median
    }
    expect(await of(false)).toBeGreaterThan(1.6)
    expect(Math.abs((await of(true)) - 1.3)).toBeLessThan(0.03)
  })

  test('continue without failing candidates; all fail if the device is lost', async () => {
    const device = new Simulated(1)
    const failing = (code: string, after: number): Sampler => {
      const timed = device.timed(9, 1)
      let n = 0
      return {
        sample: async () => (n++ < after ? timed.sample() : fail({ code, message: 'no', hint: 'none' })),
      }
    }
    const some = await measureInRounds([device.timed(0, 1), failing('device/fault', 2)], {
      rounds: 9,
      width: 0,
    })
    expect(some.exitReasons).toEqual(['rounds', 'failed'])
    expect(some.outcomes[1]).toEqual({ status: 'failed', code: 'device/fault', message: 'no' })
    const lost = await measureInRounds([device.timed(0, 1), failing('device/lost', 2), device.timed(2, 1)], {
      rounds: 9,
    })
    expect(lost.exitReasons).toEqual(['failed', 'failed', 'failed'])
    const reference = await measureInRounds([device.timed(0, 1)], { rounds: 9 }, failing('device/lost', 2))
    expect(reference.outcomes).toMatchObject([{ code: 'device/lost' }])
    const bug = { sample: async () => Promise.reject(new TypeError('a bug')) }
    await expect(measureInRounds([bug])).rejects.toThrow('a bug')
  })

  test('end by the clock after a round, and by a signal at once', async () => {
    let now = 0
    const device = new Simulated(2)
    const timed = [0, 1, 2].map((k) => {
      const { sample } = device.timed(k, 1, 0.3)
      const slow = async (): Promise<number> => {
        now += 100
        return sample()
      }
      return { sample: slow }
    })
    const { exitReasons, outcomes } = await measureInRounds(timed, { seconds: 1, now: () => now })
    expect(exitReasons).toEqual(['ended', 'ended', 'ended'])
    expect(outcomes.map((o) => timing(o).samples.length)).toEqual([4, 4, 4])
    await expect(measureInRounds(timed, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow(
      'enough',
    )
  })

  test('reproduce by their seed', async () => {
    const orders = await Promise.all(
      [4, 4, 5].map(async (seed) => {
        const device = new Simulated(1)
        await measureInRounds(
          [0, 1, 2, 3, 4].map((k) => device.timed(k, 1)),
          { seed },
        )
        return device.log.join()
      }),
    )
    expect(orders[0]).toBe(orders[1])
    expect(orders[0]).not.toBe(orders[2])
  })

  test.each([{ rounds: 0 }, { rounds: 1.5 }, { confidence: 1 }, { width: Number.NaN }, { seconds: 0 }])(
    'reject %o',
    async (options) => {
      const refused = await measureInRounds([], options).catch((e) => e)
      expect(refused).toBeInstanceOf(SptError)
      expect(refused.diagnostics[0].code).toBe('search/rounds')
    },
  )
})

/** A device of which commands say how long they take. */
function fakeDevice(log: string[]): Device {
  const random = new Random(3)
  const graph = async (commands: readonly Command[]): Promise<Graph> => {
    const labels = commands.map((c) => (c.kind === 'launch' ? c.entry : 'clear'))
    return {
      launch: () => {},
      free: () => void log.push('free'),
      [Symbol.dispose]: () => undefined,
      time: async (n, between) => {
        log.push(`${labels.length} × ${labels[0]}${between ? ' flushed' : ''}`)
        if (labels[0] === 'faulty') fail({ code: 'device/fault', message: 'no', hint: 'none' })
        const ms = labels.reduce((sum, l) => sum + (l === 'clear' ? 0 : Number(l)), 0)
        return Array.from({ length: n }, () => ms * (1 + 0.01 * random.next()))
      },
    }
  }
  const alloc = (bytes: number, label: string) => ({ bytes, label, free: () => void log.push('free') })
  return { isSoftware: true, limits: { maxBufferBytes: 1e6 }, graph, alloc } as unknown as Device
}

const launch = (entry: string): Command =>
  ({ kind: 'launch', entry, grid: [1, 1, 1], args: [] }) as unknown as Command

describe('on devices', () => {
  test('short kernels run several times per sample, in one graph; faults fail the candidate; memory is freed', async () => {
    const log: string[] = []
    const candidates = ['0.01', '2', 'faulty'].map((e) => ({ commands: [launch(e)] }))
    const { outcomes } = await measureRounds(fakeDevice(log), candidates, { reference: null, rounds: 7 })
    expect(timing(outcomes[0]).median).toBeCloseTo(0.01, 3)
    expect(timing(outcomes[1]).median).toBeCloseTo(2, 0)
    expect(outcomes[2]).toMatchObject({ status: 'failed', code: 'device/fault' })
    expect(log).toContain('50 × 0.01')
    expect(log.filter((l) => l === 'free')).toHaveLength(4)
    const cold: string[] = []
    await measureRounds(fakeDevice(cold), candidates.slice(0, 1), { reference: null, flush: true, rounds: 2 })
    // Three that say how long it is, and two that count.
    expect(cold.filter((l) => l === '1 × 0.01 flushed')).toHaveLength(5)
    expect(cold).not.toContain('50 × 0.01')
  })

  test('kernels are measured on cpu, interleaved with a generated reference', async () => {
    const device = createCpuDevice()
    const text = `kernel sum(n: size) {
  axis i = dense_fixed(n)
  buffer X: f32[i] in
  buffer Y: f32[] out
  iterate sum [i] as R { Y[] += X[i] }
}`
    const compiled = await parseProgram(text).kernel().build(device)
    const prepared = await Promise.all([10, 20].map((n) => compiled.bind({ n }, { seed: 1 })))
    const { outcomes, drift } = await measureRounds(device, prepared, {
      rounds: 6,
      warmups: 1,
      sampleMs: 0.01,
    })
    expect(outcomes.map((o) => timing(o).samples.length > 2)).toEqual([true, true])
    expect(drift!.samples.length).toBeGreaterThan(6)
    for (const sampleMs of [Number.POSITIVE_INFINITY, -1])
      await expect(measureRounds(device, [], { sampleMs })).rejects.toThrow('sampleMs')
  })
})
