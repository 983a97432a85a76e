/** The forest reports how uncertain it is: between its trees, and within their leaves. */
import { expect, test } from 'vitest'
import { Columns, Forest } from '../../src/search/strategies/forest.ts'

/** A generator with a fixed seed (mulberry32). */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

test('indistinguishable rows keep the variance of their targets', () => {
  const targets = Array.from({ length: 200 }, (_, k) => (k % 2 === 0 ? -5 : 5))
  const { mean, deviation } = Forest.fit(
    targets.map(() => [1]),
    targets,
    random(1),
  ).predict([1])
  // Trees differ by their samples alone, some 5 / sqrt(200): the rest of the deviation is within the leaves.
  expect(Math.abs(mean)).toBeLessThan(1)
  expect(deviation).toBeGreaterThan(4.8)
  expect(deviation).toBeLessThan(5.2)
})

test('disagreeing trees are uncertain even if each leaf is sure', () => {
  const rows = Array.from({ length: 8 }, (_, k) => [k])
  const forest = Forest.fit(
    rows,
    rows.map(([x]) => x! * 10),
    random(2),
  )
  const none = Forest.fit(
    rows,
    rows.map(() => 3),
    random(2),
  )
  expect(forest.predict([3.4]).deviation).toBeGreaterThan(1)
  expect(none.predict([3.4])).toEqual({ mean: 3, deviation: 0 })
})

test('a feature row does not depend on whether its columns are new', () => {
  const columns = new Columns()
  for (const point of [{ by: 4 }, { by: 4, format: 'sell(8, 64)' }, { order: 'rows', by: 2 }]) {
    const row = columns.row(point)
    expect(columns.row(point)).toEqual(row)
    expect(row.filter(Number.isFinite).length).toBeGreaterThanOrEqual(Object.keys(point).length)
  }
})
