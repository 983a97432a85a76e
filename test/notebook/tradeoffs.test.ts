/** Time against memory, and the decisions that account for times. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { convergence, importance, pareto, paretoFront } from '../../src/notebook.ts'
import { decisionImportance, rankCorrelation } from '../../src/search/statistics/importance.ts'
import type { Trial } from '../../src/search/types.ts'
import { property } from '../support/property.ts'

const timing = (median: number) => ({ median, interval: null, samples: [median] })
const trialOf = (ms: number, bytes: number | undefined, point = {}) => ({
  point,
  bytes,
  outcome: { status: 'measured' as const, timing: timing(ms) },
})
const number = fc.integer({ min: 1, max: 12 })
const trials = fc.array(
  fc.tuple(number, fc.option(number, { nil: undefined })).map(([ms, bytes]) => trialOf(ms, bytes)),
  { maxLength: 20 },
)
const bounded = { point: {}, bytes: 1, outcome: { status: 'bounded' as const, atMost: 0 } }

property([trials])('the Pareto front has the trials that no other trial dominates', (all) => {
  const front = paretoFront([bounded, ...all])
  const of = (t: (typeof front)[number]) =>
    [t.outcome.status === 'measured' ? t.outcome.timing.median : Number.NaN, t.bytes!] as const
  const isBetter = (a: readonly number[], b: readonly number[]): boolean =>
    a[0]! <= b[0]! && a[1]! <= b[1]! && (a[0]! < b[0]! || a[1]! < b[1]!)
  const known = all.filter((t) => t.bytes !== undefined)
  for (const f of front) expect(known.some((t) => isBetter(of(t), of(f)))).toBe(false)
  for (const t of known)
    expect(front.some((f) => isBetter(of(f), of(t)) || `${of(f)}` === `${of(t)}`)).toBe(true)
  expect(front).not.toContain(bounded)
})

property([fc.constantFrom('a', 'b', 'format'), fc.integer({ min: 1, max: 1000 })], { numRuns: 20 })(
  'the decision that determines times accounts for most of them',
  (which, seed) => {
    const all = Array.from({ length: 64 }, (_, k): Trial => {
      const point = { a: k % 4, b: Math.floor(k / 4) % 4, format: `f${Math.floor(k / 16)}` }
      return {
        point,
        outcome: {
          status: 'measured',
          timing: timing(2 ** Number(`${point[which as 'a']}`.replace('f', ''))),
        },
      }
    })
    const [first, ...others] = decisionImportance(all, seed)
    expect(first!.decision).toBe(which)
    expect(first!.share).toBeGreaterThan(0.8)
    expect(others.reduce((sum, o) => sum + o.share, first!.share)).toBeCloseTo(1, 9)
  },
)

describe('the figures', () => {
  const all = [trialOf(1, 400, { by: 1 }), trialOf(2, 100, { by: 2 }), trialOf(3, 300, { by: 3 }), bounded]

  test('have trials and the front, and the decisions', () => {
    const { svg } = pareto(all)
    expect(svg).toContain('Pareto front')
    expect(svg).toContain('bytes on the device')
    expect(pareto(all, { by: ['bytes', 'ms'] }).svg).not.toBe(svg)
    expect(importance(all).svg).toContain('by')
  })

  test('over time, for several searches, are in chronological order', () => {
    const resumed = all.map((t, k) => ({ ...t, time: 60_000 * [7, 5, 6, 9][k]! }))
    expect(convergence(resumed, { by: 'minutes' }).svg).toContain('minutes since the first trial')
  })

  test('without data are rejected, and so is an unknown measure', () => {
    const code = (f: () => unknown): string => {
      try {
        f()
        return ''
      } catch (e) {
        return (e as { diagnostics: readonly { code: string }[] }).diagnostics[0]!.code
      }
    }
    expect(code(() => pareto([]))).toBe('notebook/no-rows')
    expect(code(() => importance([bounded]))).toBe('notebook/no-rows')
    for (const by of [['ms', 'size'], ['ms'], ['x', 'ms'], 'ms', null] as never[]) {
      expect(code(() => pareto(all, { by }))).toBe('api/argument')
      expect(code(() => paretoFront(all, by))).toBe('api/argument')
    }
    for (const trials of [{ trials: all }, [1], [null], undefined] as never[]) {
      expect(code(() => paretoFront(trials))).toBe('api/argument')
      expect(code(() => pareto(trials))).toBe('api/argument')
    }
  })
})

test('the correlation of ranks', () => {
  for (const [b, expected] of [
    [[2, 3, 5, 7], 1],
    [[9, 8, 2, 1], -1],
    [[1, 3, 2, 4], 0.8],
    [[5, 5, 5, 5], 0],
  ] as const)
    expect(rankCorrelation([1, 2, 3, 4], b)).toBeCloseTo(expected, 12)
})
