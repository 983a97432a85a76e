/** Results of `tune` as a page: what it holds, that it fetches nothing, and that nobody's text is taken for marks. */

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { coords, type Device, load } from '../../src/node.ts'
import { roofline } from '../../src/notebook/report/roofline-section.ts'
import { intervals, tuneReport } from '../../src/notebook.ts'
import { rankCorrelation } from '../../src/search/statistics/importance.ts'
import type { Confirmation, Trial, TuneResult } from '../../src/search.ts'
import { openRecords, pointKey, space, tune } from '../../src/search.ts'
import { Folder } from '../cli/support.ts'
import { runs } from '../support/cases.ts'
import { PRODUCT } from '../support/product.ts'
import { property } from '../support/property.ts'
import { refusal } from '../support/refusal.ts'
import { simulatedDevice } from '../support/simulated-device.ts'
import { wellFormed } from '../support/xml.ts'

const TEXT = `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"
${PRODUCT}`
const entries = Array.from({ length: 30 }, (_, k) => [k % 8, (k * 5) % 9] as const)
const A = coords([8, 9], [entries.map(([i]) => i), entries.map(([, j]) => j)])
const inputs = { tensors: { A }, params: { d: 4 }, seed: 3 }

const folder = new Folder()
afterAll(() => folder.remove())

let device: Device
/** As `tune` gives it, and with times and a confirmation that are stated. */
let found: TuneResult
let result: TuneResult
beforeAll(async () => {
  device = await simulatedDevice()
  const kernel = (await load(TEXT)).kernel()
  const points = space('ways', kernel, (p) => {
    const by = p.number('by', [1, 2, 4])
    return p.pick('format', {
      hyb: (k) => k.as('A', 'hyb', 1, by),
      split: (k) => k.split('f', by),
      refused: (k) => k.split('nowhere', by),
    })
  })
  const records = await openRecords(folder.at('records.db'))
  const prior = (asked: readonly object[]): number[] =>
    asked.map((p) => ('format' in p && p.format === 'refused' ? Infinity : Number((p as { by: number }).by)))
  found = await tune(kernel, {
    space: points,
    inputs,
    device,
    prior,
    records,
    trials: 20,
    explain: true,
    strategy: 'exhaustive',
  })
  const kept = records.query({ studies: [found.study!] })
  // Kept as they are known: what is refused comes before what is measured.
  const predicted = (trials: readonly Trial[]) =>
    new Map(trials.map((t) => [pointKey(t.point), t.predicted ?? null]))
  expect(predicted(kept)).toEqual(predicted(found.trials))
  records.close()
  // Times that do not differ from run to run, of all that was measured.
  const finals = found.finalists.map((f, k) => ({ ...f, outcome: measured(k + 1) }))
  const best = finals.find((f) => f.name === 'point 1')!
  const standard = finals.find((f) => f.name === 'default')!
  // Two objects, as after a file was read again.
  const timed = () => ({ ...best, timing: best.outcome.timing })
  result = {
    ...found,
    finalists: finals,
    defaultSchedule: standard,
    best: timed(),
    bestSchedule: timed(),
    confirmation: CONFIRMED,
  }
})

const measured = (ms: number) =>
  ({
    status: 'measured',
    timing: { median: ms, interval: [0.9 * ms, 1.1 * ms] as const, samples: [ms] },
  }) as const

const CONFIRMED: Confirmation = {
  name: 'point 1',
  ratio: 0.5,
  interval: [0.4, 0.6],
  rounds: 8,
  verdict: 'faster',
}

const body = (html: string): string => /<body>[\s\S]*<\/body>/.exec(html)![0]
const shown = (html: string): string =>
  body(html)
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')

/** Of the chip whose ceilings are measured. */
const CEILINGS = { memory: 4e12, cache: 8e12, cacheBytes: 6e7, f32: 6e13, tf32: 3e14, f16: 6e14 }

test('statements of tune', () => {
  const { subject, trials, finalists } = result
  expect(subject).toMatchObject({
    kernel: 'product',
    device: { kind: 'cpu' },
    space: 'ways',
    strategy: 'exhaustive',
    seed: 1,
    sizes: { m: 8, n: 9, d: 4 },
  })
  expect(subject.tensors.map((t) => [t.name, t.shape, t.stored])).toEqual([
    ['A', [8, 9], 30],
    ['B', [9, 4], null],
  ])
  expect(Math.abs(Date.parse(subject.started) - Date.now())).toBeLessThan(600_000)
  const seconds = trials.map((t) => t.seconds!)
  expect(seconds.every((s, k) => s > 0 && (k === 0 || s >= seconds[k - 1]!))).toBe(true)
  for (const { point, predicted } of trials)
    expect(predicted).toBe(point.format === 'refused' ? undefined : point.by)
  const written = finalists.find((f) => f.name === 'unscheduled')!.explanation!.total
  // A multiplication with an addition for each element of A and column.
  expect(written.operations.scalar).toBe(2 * 30 * 4)
})

describe('the page', () => {
  test('names the best schedule of a search, and does not claim the fastest if intervals overlap', () => {
    expect(found.best?.routine ?? null).toBe(null)
    expect(shown(tuneReport(found))).not.toContain('routine of a library')
    const overlapping = found.finalists.map((f) => ({ ...f, outcome: measured(1) }))
    const best = { ...found.best!, timing: measured(1).timing }
    const text = shown(
      tuneReport({ ...found, finalists: overlapping, best, bestSchedule: best, confirmation: null }),
    )
    expect(text).not.toContain('is the fastest:')
    expect(text).toContain('not distinguishable from ')
  })

  test('contains all results', () => {
    const html = tuneReport(result, { tensors: { A } })
    const text = shown(html)
    for (const part of [
      'product tuned on',
      'The best of the search is the fastest: 1 ms, 2 times as fast as the default schedule in fresh preparations, 5 times as fast as the unscheduled kernel',
      'Point 1 takes 0.5 (0.4 to 0.6) times the time of the default, in 8 fresh preparations: faster.',
      'Comparison with the default schedule',
      'Best so far, by trials',
      'Best so far, by seconds',
      'rank correlation',
      'Prediction against measurement',
      'Not drawn: the peak performance of',
      'schedule/unknown-loop',
      'schedule product.tuned {',
      '.replay(',
      'Stored tensors',
      'The best trials',
    ])
      expect(text).toContain(part)
    expect(text).not.toContain('routine of a library')
    wellFormed(body(html))
  })

  test('fetches nothing, and runs nothing', () => {
    const html = tuneReport(result, { tensors: { A } })
    expect(html).not.toMatch(/<script|<link|<img|<iframe|\b(?:src|href)=|@import|url\((?!#)/i)
    expect(html).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`)
  })

  test('has a roofline if ceilings are known, otherwise a reason', () => {
    expect(shown(tuneReport({ ...result, ceilings: CEILINGS }))).toContain('memory: 4 TB/s')
    expect(shown(tuneReport({ ...result, ceilings: CEILINGS }))).not.toContain('matrix units')
    const uncounted = result.finalists.map(({ explanation: _, ...f }) => f)
    expect(shown(tuneReport({ ...result, ceilings: CEILINGS, finalists: uncounted }))).toContain(
      'bytes and operations were not counted (explain)',
    )
    const unexplained = { status: 'failed', code: 'device/lost', message: 'gone' } as const
    const lost = uncounted.map((f) => ({ ...f, unexplained }))
    expect(shown(tuneReport({ ...result, ceilings: CEILINGS, finalists: lost }))).toContain('(device/lost')
  })

  test('without a prior, with a search that is known, with nothing measured', () => {
    const plain = result.trials.map(({ predicted: _, seconds: __, ...t }) => t)
    const known = shown(tuneReport({ ...result, trials: plain }))
    expect(known).not.toContain('rank correlation')
    expect(known).not.toContain('Prediction against measurement')
    expect(known).toContain('All trials are from the records')
    const outcome = { status: 'failed', code: 'device/lost', message: 'gone' } as const
    const finals = result.finalists.map((f) => ({ ...f, outcome }))
    const trials = plain.map((t) => ({ ...t, outcome }))
    const nothing = tuneReport({
      ...result,
      trials,
      finalists: finals,
      defaultSchedule: finals[0]!,
      best: null,
    })
    expect(shown(nothing)).toContain('Nothing could be measured.')
    expect(shown(nothing)).toContain('failed: device/lost')
    wellFormed(body(nothing))
  })

  test('states that the default is kept if no difference is measurable', () => {
    const { defaultSchedule } = result
    const own = { ...defaultSchedule, timing: measured(4).timing }
    const confirmation = {
      ...CONFIRMED,
      ratio: 0.97,
      interval: [0.9, 1.1],
      verdict: 'not distinguishable',
    } as const
    const text = shown(tuneReport({ ...result, best: own, bestSchedule: own, confirmation }))
    expect(text).toContain('The default schedule is kept: 4 ms. The fastest of the search (point 1) is not')
    expect(text).toContain('distinguishable')
    expect(text).toContain('The default schedule, in the language and in TypeScript')
  })

  test('wrong results are called bugs', () => {
    const wrong = [{ space: 'ways', point: {}, message: 'differs' }]
    expect(shown(tuneReport({ ...result, wrong }))).toContain('1 differ from the reference')
  })

  test('times of 0 from coarse clocks are accepted', () => {
    const outcome = measured(0)
    const finals = result.finalists.map((f) => ({ ...f, outcome }))
    const trials = result.trials.map((t) => ({ ...t, outcome }))
    const best = { ...finals[0]!, timing: outcome.timing }
    wellFormed(body(tuneReport({ ...result, trials, finalists: finals, best, ceilings: CEILINGS })))
  })

  test('a search without a measurement says so, and tensors have their share of elements', () => {
    const trials = result.trials.map((t) => ({
      ...t,
      outcome: { status: 'failed', code: 'a/b', message: '' } as const,
    }))
    expect(shown(tuneReport({ ...result, trials }))).toContain('No trial was measured.')
    const html = shown(tuneReport(result))
    expect(html).not.toContain('No trial was measured.')
    // 30 of 8 × 9 elements.
    expect(html).toMatch(/8 × 9, \w+, 30 stored \(41[.\d]* %\)/)
  })

  const texts = fc.string({
    unit: fc.constantFrom(...' <>&"\'`/*ab1_.{}|é🌍\u0001'),
    minLength: 1,
    maxLength: 20,
  })
  property([texts], { numRuns: runs(25) })('escapes any text', (text) => {
    const marked = `${text}<script>alert(1)</script>`
    const point = { [marked]: marked, other: text }
    const refused = { status: 'rejected', code: marked, message: marked } as const
    const { subject, defaultSchedule } = result
    const html = tuneReport(
      {
        ...result,
        trials: [
          { point, outcome: measured(1), predicted: 1, seconds: 1 },
          { point: { ...point, other: marked }, outcome: measured(1), predicted: 2 },
          { point, outcome: refused },
        ],
        defaultSchedule: { ...defaultSchedule, schedule: marked },
        finalists: result.finalists.map((f) => (f.name === 'default' ? { ...f, schedule: marked } : f)),
        subject: {
          ...subject,
          kernel: marked,
          space: marked,
          strategy: marked,
          device: { kind: 'cpu', name: marked, driver: marked },
          sizes: { [marked]: 1 },
          tensors: [{ name: marked, shape: [1], dtype: 'f32', stored: null }],
        },
      },
      { tensors: { [marked]: A } },
    )
    expect(html).not.toContain('<script')
    wellFormed(body(html))
    // Once for each of these at least.
    expect(shown(html).split(marked.replaceAll('\u0001', '\ufffd')).length).toBeGreaterThan(12)
  })

  test('unsupported results are rejected', () => {
    expect(refusal(() => tuneReport({} as never)).code).toBe('api/argument')
    expect(refusal(() => tuneReport(result, { tensor: {} } as never)).code).toBe('api/unknown-option')
    expect(refusal(() => tuneReport(result, { tensors: 3 as never })).code).toBe('api/argument')
  })
})

describe('charts of it', () => {
  const positive = fc.double({ min: 1e-3, max: 1e3, noNaN: true })
  property([fc.array(fc.tuple(positive, positive), { minLength: 1, maxLength: 6 })], {
    numRuns: runs(40),
  })('points under the roofs are drawn under them', (drawn) => {
    const [bandwidth, top] = [1e12, 1e13]
    const points = drawn.map(([intensity, share], k) => ({
      name: `${k}`,
      intensity,
      rate: Math.min(1, share) * Math.min(bandwidth * intensity, top),
    }))
    const { svg } = roofline(
      [
        { name: 'memory', kind: 'bytes', perSecond: bandwidth },
        { name: 'f32', kind: 'operations', perSecond: top },
      ],
      points,
    )
    const numbers = (text: string): number[] => [...text.matchAll(/-?[\d.]+/g)].map(Number)
    const [slope, flat] = [...svg.matchAll(/<path d="([^"]*)"/g)].map((m) => numbers(m[1]!))
    const roofAt = (x: number): number => {
      const [x0, y0, x1, y1] = slope as [number, number, number, number]
      return Math.max(flat![1]!, y0 + ((x - x0) / (x1 - x0)) * (y1 - y0))
    }
    const circles = [...svg.matchAll(/<circle cx="([^"]*)" cy="([^"]*)"/g)].map((m) => [+m[1]!, +m[2]!])
    expect(circles).toHaveLength(points.length)
    for (const [x, y] of circles) expect(y! >= roofAt(x!) - 0.5).toBe(true)
    wellFormed(svg)
  })

  test('intervals lie around their values', () => {
    const rows = [
      { name: 'a', ms: 2, low: 1, high: 4 },
      { name: 'a', ms: 8, low: 8, high: 8 },
    ]
    for (const log of [false, true]) {
      const { svg } = intervals(rows, { x: 'ms', from: 'low', to: 'high', y: 'name', log })
      const bars = [...svg.matchAll(/<path d="M([\d.]+) [\d.]+v10M[\d.]+ [\d.]+H([\d.]+)M/g)]
      const dots = [...svg.matchAll(/<circle cx="([^"]*)"/g)].map((m) => Number(m[1]))
      expect(bars).toHaveLength(2)
      expect(Number(bars[0]![1]) < dots[0]! && dots[0]! < Number(bars[0]![2])).toBe(true)
      expect(Math.abs(Number(bars[1]![1]) - dots[1]!)).toBeLessThan(0.01)
      wellFormed(svg)
    }
  })
})

describe('rank correlation', () => {
  const list = fc.uniqueArray(fc.integer({ min: -1000, max: 1000 }), { minLength: 2, maxLength: 20 })
  property([list], { numRuns: runs(40) })('is 1 for concordant ranks and −1 for discordant ones', (xs) => {
    expect(
      rankCorrelation(
        xs,
        xs.map((x) => x ** 3 + 7),
      ),
    ).toBeCloseTo(1, 12)
    expect(
      rankCorrelation(
        xs,
        xs.map((x) => -x),
      ),
    ).toBeCloseTo(-1, 12)
  })

  const pairs = fc.array(fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 4 })), {
    maxLength: 12,
  })
  property([pairs], { numRuns: runs(60) })('is Pearson’s correlation of ranks, with averaged ties', (all) => {
    const [x, y] = [all.map((p) => p[0]), all.map((p) => p[1])]
    const rank = (v: readonly number[]): number[] =>
      v.map((a) => v.filter((b) => b < a).length + (v.filter((b) => b === a).length - 1) / 2)
    const mean = (v: readonly number[]): number => v.reduce((a, b) => a + b, 0) / v.length
    const [p, q] = [rank(x), rank(y)]
    const dot = (a: number[], b: number[]): number =>
      a.reduce((sum, v, k) => sum + (v - mean(a)) * (b[k]! - mean(b)), 0)
    const scale = Math.sqrt(dot(p, p) * dot(q, q))
    expect(rankCorrelation(x, y)).toBeCloseTo(scale > 1e-9 ? dot(p, q) / scale : 0, 9)
    expect(rankCorrelation(x, y)).toBeCloseTo(rankCorrelation(y, x), 12)
  })
})
