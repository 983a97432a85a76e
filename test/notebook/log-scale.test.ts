/** Ticks of logarithmic axes: within the axis, in order, as many as can be read, and at round numbers. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { scaleOf } from '../../src/notebook/chart/scale.ts'

/** Values of more than nine kinds between two ends, so that ticks are not at the values themselves. */
const between = (low: number, high: number): number[] =>
  Array.from({ length: 40 }, (_, k) => low * (high / low) ** (k / 39))

const ticks = (low: number, high: number): number[] =>
  scaleOf(between(low, high), 0, 600, { log: true, zero: false }).ticks.map((t) => Number(t.text))

test.each([
  [1, 1000, [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]],
  [3, 70, [5, 10, 20, 50]],
  [0.02, 0.9, [0.02, 0.05, 0.1, 0.2, 0.5]],
  [1, 1e5, [1, 10, 100, 1000, 1e4, 1e5]],
  [1, 1e16, [1, 100, 1e4, 1e6, 1e8, 1e10, 1e12, 1e14, 1e16]],
])('from %d to %d', (low, high, wanted) => {
  const { ticks: drawn, pixelOf: at } = scaleOf(between(low, high), 0, 600, { log: true, zero: false })
  expect(drawn.map((t) => t.pixel)).toEqual(wanted.map((v) => expect.closeTo(at(v), 6)))
})

test('between two round numbers ticks are as on a linear axis', () => {
  expect(ticks(11, 19).length).toBeGreaterThanOrEqual(3)
})

test('of any range: some ticks, in order, within the axis', () => {
  fc.assert(
    fc.property(
      fc.double({ min: -9, max: 9, noNaN: true }),
      fc.double({ min: 0.05, max: 18, noNaN: true }),
      (from, decades) => {
        const values = between(10 ** from, 10 ** (from + decades))
        const { ticks: drawn, pixelOf: at } = scaleOf(values, 0, 600, { log: true, zero: false })
        const places = drawn.map((t) => t.pixel)
        expect(places.length).toBeGreaterThanOrEqual(2)
        expect(places.length).toBeLessThanOrEqual(14)
        expect(places).toEqual([...places].sort((a, b) => a - b))
        expect(Math.min(...places)).toBeGreaterThanOrEqual(at(values[0]!) - 1e-6)
        expect(Math.max(...places)).toBeLessThanOrEqual(at(values.at(-1)!) + 1e-6)
      },
    ),
  )
})
