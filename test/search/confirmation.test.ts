/** Whether a schedule is faster than the default is said where fresh preparations agree, and nothing is said otherwise. */
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { coords, type Kernel, load } from '../../src/node.ts'
import { Evaluator } from '../../src/search/evaluate/evaluator.ts'
import { summarizeSamples } from '../../src/search/measuring/median-interval.ts'
import { areDisjoint, confirmByRounds } from '../../src/search/tune/finals/finals.ts'
import { type Finalist, recommend } from '../../src/search/tune/finals/last-comparison.ts'
import { PRODUCT } from '../support/product.ts'
import { property } from '../support/property.ts'
import { simulatedDevice } from '../support/simulated-device.ts'

const inTurn = (ratios: readonly number[]) => async (n: number) => ratios[n % ratios.length]!
const ratio = fc.double({ min: 0.5, max: 0.99, noNaN: true })

property([fc.array(ratio, { minLength: 1, maxLength: 16 })])(
  'a schedule that is faster each time is reported as faster',
  async (all) => {
    const found = await confirmByRounds('point 1', inTurn(all))
    expect(found).toMatchObject({ verdict: 'faster', rounds: 8 })
    expect(found!.ratio).toBeGreaterThanOrEqual(found!.interval[0])
    expect(found!.ratio).toBeLessThanOrEqual(found!.interval[1])
    const other = await confirmByRounds('point 1', inTurn(all.map((r) => 1 / r)))
    expect(other).toMatchObject({ verdict: 'slower', rounds: 8 })
  },
)

property([ratio])('schedules with mixed outcomes are indistinguishable, after more rounds', async (r) => {
  expect(await confirmByRounds('point 1', inTurn([r, 1 / r]))).toMatchObject({
    verdict: 'not distinguishable',
    rounds: 16,
  })
})

test('a single lucky round does not decide, and few rounds prove nothing', async () => {
  expect(await confirmByRounds('point 1', inTurn([0.5, 1.01, 1.02, 0.99]))).toMatchObject({
    verdict: 'not distinguishable',
  })
  let n = 0
  expect(await confirmByRounds('point 1', inTurn([0.5]), () => n++ >= 5)).toMatchObject({
    verdict: 'not distinguishable',
    rounds: 5,
  })
  expect(await confirmByRounds('point 1', inTurn([0.5]), () => true)).toBe(null)
  expect(await confirmByRounds('point 1', inTurn([Number.NaN]))).toBe(null)
})

describe('the recommended schedule', async () => {
  const kernel = (await load(`import "sparsetile/kernels/formats.spt"\n${PRODUCT}`)).kernel('product')
  const A = coords(
    [6, 5],
    [
      [0, 1, 1, 4],
      [2, 0, 3, 4],
    ],
    [1, 2, 3, 4],
  )
  const open: Evaluator[] = []
  afterEach(() => {
    for (const e of open.splice(0)) e.close()
  })

  const final = (name: string, of: Kernel, ...samples: number[]): Finalist => ({
    name,
    point: name === 'point 1' ? {} : null,
    kernel: of,
    outcome: { status: 'measured', timing: summarizeSamples(samples) },
  })

  /** @param ms of all runs of the preparation with the number */
  async function judged(finals: readonly Finalist[], ms: (prepared: number) => number, signal?: AbortSignal) {
    const device = await simulatedDevice()
    const inputs = { tensors: { A }, params: { d: 4 }, seed: 3 }
    const e = new Evaluator({ kernel, inputs, device })
    open.push(e)
    let rounds = 0
    e.bench.measureFresh = async (compiled) => {
      rounds++
      return compiled.map((_, k) => ms(2 * (rounds - 1) + k))
    }
    const told: string[] = []
    const options = {
      seed: 1,
      search: { seconds: 60 },
      onCompare: (name: string) => void told.push(name),
      signal,
    }
    return { told, ...(await recommend(finals, e, options)) }
  }

  const found = final('point 1', kernel.split('f', 2), 1, 1.1, 1.2)
  const standard = final('default', kernel, 1.05, 1.3, 1.4)

  test('is the measured best if the confirmation agrees', async () => {
    // Whoever is prepared first in a round is last in the next.
    const r = await judged([found, standard], (k) => ([0, 3].includes(k % 4) ? 1 : 1.2))
    expect(r).toMatchObject({
      best: { name: 'point 1' },
      bestSchedule: { name: 'point 1' },
      told: ['point 1 with the default'],
    })
    expect(r.confirmation).toMatchObject({ verdict: 'faster', ratio: expect.closeTo(1 / 1.2, 6) })
  })

  test('is the default if the measured best is not distinguishable from it', async () => {
    // What is prepared first is the slower, whichever it is.
    const r = await judged([found, standard], (k) => (k % 2 === 0 ? 1.2 : 1))
    expect(r).toMatchObject({ best: { name: 'default' }, bestSchedule: { name: 'default' } })
    expect(r.confirmation).toMatchObject({ name: 'point 1', verdict: 'not distinguishable' })
  })

  test('is the default if it is the same, or the fastest, without further measurements', async () => {
    for (const finals of [
      [final('point 1', kernel, 1, 1, 1), standard],
      [found, final('default', kernel, 0.5, 0.6, 0.7)],
    ])
      expect(await judged(finals, () => 1)).toMatchObject({
        bestSchedule: { name: 'default' },
        confirmation: null,
        told: [],
      })
  })

  test('after an abort is the measured best if the intervals are apart', async () => {
    const stop = AbortSignal.abort()
    expect(await judged([found, standard], () => 1, stop)).toMatchObject({
      bestSchedule: { name: 'default' },
    })
    const slow = final('default', kernel, 2, 2.1)
    expect(await judged([found, slow], () => 1, stop)).toMatchObject({ bestSchedule: { name: 'point 1' } })
  })
})

test('overlapping intervals are indistinguishable', () => {
  expect(areDisjoint(summarizeSamples([1, 2]), summarizeSamples([1.9, 3]))).toBe(false)
  expect(areDisjoint(summarizeSamples([1, 2]), summarizeSamples([2.1, 3]))).toBe(true)
  expect(areDisjoint(summarizeSamples([1]), summarizeSamples([3, 3]))).toBe(false)
})
