/** Searches on one file of records: each point is measured once, whoever asks for it, and all learn of all trials. */
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { processorKeyBy } from '../../src/io/package/calibrations.ts'
import { coords, load } from '../../src/node.ts'
import { search } from '../../src/search/loop/search.ts'
import { createStudy, openRecords } from '../../src/search/records/index.ts'
import { space } from '../../src/search/spaces/function-space.ts'
import { tune } from '../../src/search/tune/index.ts'
import type { Outcome, Trial } from '../../src/search/types.ts'
import { Folder } from '../cli/support.ts'
import { PRODUCT } from '../support/product.ts'
import { property } from '../support/property.ts'
import { simulatedDevice } from '../support/simulated-device.ts'

const folder = new Folder()
afterAll(() => folder.remove())

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
const splits = space('splits', kernel, (p) => {
  const by = p.number('by', [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  return (k) => k.split('f', by)
})
const timing = (median: number) => ({ median, interval: [median, median] as const, samples: [median] })
const measured = (median: number): Outcome => ({ status: 'measured', timing: timing(median) })

test('two concurrent searches measure no point twice, and both have the trials of both', async () => {
  const path = folder.at('both.db')
  const one = async () => {
    const records = await openRecords(path)
    const device = await simulatedDevice()
    const options = { space: splits, inputs, device, records, trials: 5, batch: 2, seed: 1, resume: true }
    const found = await tune(kernel, { ...options, strategy: 'random' })
    records.close()
    return found
  }
  const [first, second] = await Promise.all([one(), one()])
  const own = [first, second].map((r) => r.trials.filter((t) => t.seconds !== undefined))
  expect(own.map((t) => t.length)).toEqual([5, 5])
  const points = own.flat().map((t) => t.point.by)
  expect(new Set(points).size).toBe(10)
  // Whoever ends last knows of all; `known` counts those of the other.
  expect(Math.max(first.trials.length, second.trials.length)).toBe(10)
  expect([first, second].map((r) => r.trials.length - r.knownTrials)).toEqual([5, 5])
  const bytes = first.trials.map((t) => t.bytes)
  expect(bytes.every((b) => b! > 0)).toBe(true)
})

test('a claim belongs to one search, and ends with the trial', async () => {
  const records = await openRecords(':memory:')
  const study = createStudy(kernel, inputs, { kind: 'cpu', name: 'one', driver: '1' }, { space: 's' })
  records.addStudy(study)
  const points = [{ by: 1 }, { by: 2 }]
  expect(records.claim(study.id, points.slice(0, 1), 'a', 0)).toEqual([true])
  expect(records.claim(study.id, points, 'b', 0)).toEqual([false, true])
  expect(records.claim(study.id, points, 'a', 0)).toEqual([true, false])
  records.add({ study: study.id, point: points[0]!, outcome: { status: 'bounded', atMost: 9 }, time: 5 })
  expect(records.claim(study.id, points, 'b', 0)).toEqual([true, true])
  records.add({ study: study.id, point: points[0]!, outcome: measured(1), time: 5 })
  // What was done before the search began may be measured again.
  expect(records.claim(study.id, points, 'b', 5)).toEqual([false, true])
  expect(records.claim(study.id, points, 'b', 6)).toEqual([true, true])
  records.close()
})

describe('trials of other searches', () => {
  const all = Array.from(
    { length: 12 },
    (_, k): Trial => ({ point: { by: k + 1 }, outcome: measured(20 - k) }),
  )

  property([fc.subarray(all), fc.integer({ min: 1, max: 12 })], { numRuns: 20 })(
    'are reported before each proposal, are not proposed again, and count in no budget',
    async (theirs, trials) => {
      const left = [...theirs]
      const asked: unknown[] = []
      const found = await search({
        space: splits,
        strategy: 'exhaustive',
        trials,
        externalTrials: async () => left.splice(0, 2),
        evaluate: async (some) => {
          asked.push(...some.map((a) => a.point.by))
          return some.map(({ point }) => measured(21 - Number(point.by)))
        },
      })
      expect(new Set(asked).size).toBe(asked.length)
      expect(asked.length).toBeLessThanOrEqual(trials)
      expect(found.trials.length).toBe(asked.length + theirs.length - left.length)
      expect(found.best?.outcome).toEqual(
        measured(Math.min(...found.trials.map((t) => 21 - Number(t.point.by)))),
      )
    },
  )

  test('a point in evaluation elsewhere is skipped', async () => {
    const found = await search({
      space: splits,
      strategy: 'exhaustive',
      trials: 4,
      externalTrials: async () => [],
      evaluate: async (some) => some.map(({ point }) => (Number(point.by) % 2 ? null : measured(1))),
    })
    expect(found.trials.map((t) => t.point.by)).toEqual([2, 4, 6, 8])
    const refused = search({ space: splits, strategy: 'exhaustive', evaluate: async () => [null] })
    await expect(refused).rejects.toMatchObject({ diagnostics: [{ code: 'search/outcomes' }] })
  })
})

test('CPUs of one name are distinguished by cores, caches, microcode and frequency only', () => {
  const info = (more: Readonly<Record<string, string>> = {}): string =>
    Object.entries({
      processor: '0',
      'model name': 'Processor',
      microcode: '0x1',
      'cpu MHz': '2000.1',
      bogomips: '4000.00',
      flags: 'a b',
      ...more,
    })
      .map(([name, value]) => `${name}\t: ${value}\n`)
      .join('')
  const cpu = { model: 'Processor', speed: 2000 }
  const key = (text: string, cache = '32K', all = [cpu, cpu]): string =>
    processorKeyBy(
      (path) => (path.endsWith('cpuinfo') ? `${text}\n${text}` : path.includes('index0') ? cache : ''),
      all,
    )
  const usual = key(info())
  expect(usual).toMatch(/^2 × [0-9a-f]{8}$/)
  expect(key(info({ 'cpu MHz': '3100.7', bogomips: '4000.02' }))).toBe(usual)
  const others = [
    key(info({ microcode: '0x2' })),
    key(info({ flags: 'a b c' })),
    key(info({ bogomips: '5200' })),
    key(info(), '48K'),
    key(info(), '32K', [cpu]),
  ]
  expect(new Set([usual, ...others]).size).toBe(6)
})
