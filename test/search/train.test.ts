/** A cost model from a user's own records: learned from terms and times, for their device alone. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectedTime } from '../../src/cost-model/learned/fitting.ts'
import { type Calibration, initialModel, isCalibration } from '../../src/cost-model/learned/trained-models.ts'
import { TERM_NAMES, type Terms } from '../../src/cost-model/terms.ts'
import {
  calibrationPath,
  chipOf,
  makeCalibrationFolder,
  writeCalibration,
} from '../../src/io/package/calibrations.ts'
import { coords, load } from '../../src/node.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { type StudySample, trainedModel } from '../../src/search/calibrate/train.ts'
import { openRecords, tune } from '../../src/search.ts'
import { spt } from '../cli/support.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { refusal } from '../support/refusal.ts'
import { simulatedDevice } from '../support/simulated-device.ts'

const start = initialModel('cpu')
const base: Calibration = {
  ...start,
  kind: 'cpu',
  chip: 'a chip',
  driver: 'a driver',
  ceilings: { memory: 1e9, cache: 1e9, cacheBytes: 1e6, f32: 1e9 },
  error: 0.1,
  kernels: [],
}

/** Terms of kernels that stream and compute. */
function termsFrom(random: Random): Terms {
  const some = (most: number): number => 1 + random.below(most)
  const zero = Object.fromEntries(TERM_NAMES.map((n) => [n, 0])) as unknown as Record<string, number>
  const n = some(1e6)
  return {
    ...zero,
    launches: 1,
    operations: n * some(8),
    statements: n,
    entries: n / some(64),
    elements: n,
    loadRequests: n,
    loadBytes: 4 * n,
    footprint: 4 * n,
    blocks: 1,
    blockThreads: 1,
    branches: n / some(16),
  } as unknown as Terms
}

const [SAMPLES, STUDIES] = [48, 4]
const samplesOf = (seed: number, factor: (t: Terms) => number): StudySample[] => {
  const random = new Random(seed)
  return Array.from({ length: SAMPLES }, (_, k) => {
    const terms = termsFrom(random)
    return {
      study: `s${k % STUDIES}`,
      terms,
      milliseconds: expectedTime(terms, base.coefficients) * factor(terms),
    }
  })
}

describe('training', () => {
  property([fc.integer({ min: 1, max: 1e6 }), fc.double({ min: 1.5, max: 6, noNaN: true })], {
    numRuns: runs(3),
  })('finds the slowdown of a device, and reports its error', (seed, slower) => {
    const { trained, ...model } = trainedModel(
      base,
      samplesOf(seed, () => slower),
    )
    expect(trained).toMatchObject({ samples: SAMPLES, studies: STUDIES })
    expect(trained.before).toBeCloseTo(Math.log(slower), 6)
    expect(trained.after).toBeLessThan(trained.before / 2)
    expect(isCalibration(model)).toBe(true)
    expect([model.chip, model.driver]).toEqual([base.chip, base.driver])
  })

  test('keeps a model that has nothing to learn', () => {
    expect(
      refusal(() =>
        trainedModel(
          base,
          samplesOf(3, () => 1),
        ),
      ).code,
    ).toBe('calibrate/no-gain')
  })

  test('needs a minimum number of trials', () => {
    expect(refusal(() => trainedModel(base, samplesOf(3, () => 2).slice(0, 39))).code).toBe(
      'calibrate/few-records',
    )
  })
})

describe('spt calibrate --train', () => {
  let home: string
  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), 'spt-train-'))
  })
  afterAll(() => rmSync(home, { recursive: true, force: true }))

  test('learns from trials of a search, for this device', async () => {
    const cpu = await simulatedDevice()
    const env = { SPT_CACHE_DIR: join(home, 'cache') }
    mkdirSync(env.SPT_CACHE_DIR)
    const db = join(home, 'study.db')
    const records = await openRecords(db)
    const kernel = (await load('sparsetile/kernels/spmv.spt')).kernel('spmv')
    const A = coords(
      [3, 4],
      [
        [0, 0, 2, 2],
        [0, 2, 1, 3],
      ],
    )
    const { study, trials } = await tune(kernel, {
      inputs: { tensors: { A, x: new Float32Array(4).fill(1) } },
      device: cpu,
      trials: 4,
      seed: 1,
      records,
    })
    const kept = records.query({ studies: [study!], status: 'measured' })
    expect(kept.length).toBeGreaterThan(0)
    expect(kept.length).toBeLessThanOrEqual(trials.length)
    for (const t of kept) expect(Object.keys(t.terms ?? {})).toEqual([...TERM_NAMES])

    const args = ['calibrate', '--train', '--db', db]
    const first = await spt(args, { env })
    expect([first.code, first.err]).toEqual([1, expect.stringContaining('calibrate/not-calibrated')])
    const path = calibrationPath(chipOf(cpu), env)!
    await makeCalibrationFolder(path)
    const { name, driver } = chipOf(cpu)
    await writeCalibration(path, { ...base, chip: name, driver })
    const second = await spt(args, { env })
    expect(second.err).toContain('calibrate/few-records')

    // Trials of another device are not counted, whatever they say.
    const [one] = kept
    const own = records.study(study!)!
    const other = { ...own, id: 'another', device: { ...own.device, name: 'another chip' } }
    records.addStudy(other)
    for (const [k, s] of samplesOf(5, () => 3).entries())
      for (const to of [study!, other.id])
        records.add({
          study: to,
          point: { k },
          outcome: {
            status: 'measured',
            timing: {
              median: s.milliseconds,
              interval: [s.milliseconds, s.milliseconds],
              samples: [s.milliseconds, s.milliseconds],
            },
          },
          terms: to === study ? s.terms : { ...s.terms, operations: 1 },
          trace: one!.trace,
        })
    records.close()
    const out = join(home, 'model.json')
    const { code, out: printed, err } = await spt([...args, '--out', out, '--json'], { env })
    expect([code, err]).toEqual([0, expect.anything()])
    const model = JSON.parse(printed)
    expect(model.trained).toMatchObject({ samples: SAMPLES + kept.length, studies: 1 })
    expect(model.trained.after).toBeLessThan(model.trained.before)
    expect([model.chip, model.driver]).toEqual([name, driver])
    writeFileSync(out, '')
  })

  test('cannot be combined with --seconds, nor --db without it', async () => {
    for (const args of [
      ['--train', '--seconds', '9'],
      ['--db', 'x.db'],
    ])
      expect((await spt(['calibrate', ...args], {})).err).toContain('has no effect')
  })
})
