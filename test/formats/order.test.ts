import fc from 'fast-check'
import { expect, it } from 'vitest'
import { lexicographic } from '../../src/columns/lexicographic-sort.ts'
import { runs } from '../support/cases.ts'

/** Deterministic, so that a failing size can be run again. */
function numbers(n: number, max: number, seed: number): Int32Array {
  let state = seed >>> 0
  return Int32Array.from({ length: n }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * (max + 1))
  })
}

const bound = fc.constantFrom(0, 1, 2, 7, 100, 2047, 2048, 1_000_000, 2 ** 31 - 1)

it('is the stable order of tuples, below and above one bucket', () => {
  fc.assert(
    fc.property(
      fc.array(bound, { minLength: 1, maxLength: 4 }),
      fc.constantFrom(0, 1, 2, 50, 3000, 20_000, 70_000),
      fc.integer(),
      fc.boolean(),
      (maxima, n, seed, nearlySorted) => {
        const keys = maxima.map((m, k) => numbers(n, m, seed + k))
        if (nearlySorted) keys[0]!.sort()
        const expected = Array.from({ length: n }, (_, e) => e).sort((a, b) => {
          for (const key of keys) if (key[a] !== key[b]) return key[a]! - key[b]!
          return a - b
        })
        const { order, columns } = lexicographic(keys, maxima)
        expect(Array.from(order ?? expected.map((_, e) => e))).toEqual(expected)
        columns.forEach((c, k) => {
          expect(
            Buffer.from(c.buffer).equals(Buffer.from(Int32Array.from(expected, (e) => keys[k]![e]!).buffer)),
          ).toBe(true)
        })
      },
    ),
    { numRuns: runs(60) },
  )
})

it('does not change ordered input', () => {
  const keys = [Int32Array.of(0, 0, 1, 1, 1), Int32Array.of(3, 3, 0, 2, 2)]
  const { order, columns } = lexicographic(keys, [1, 3])
  expect(order).toBeNull()
  expect(columns).toBe(keys)
})

it('sorts by the first key if the second is in order already', () => {
  const n = 50_000
  const rows = numbers(n, 999, 1).sort()
  const columns = numbers(n, 999, 2)
  const sorted = lexicographic([columns, rows], [999, 999])
  expect(sorted.order).not.toBeNull()
  const [a, b] = sorted.columns as [Int32Array, Int32Array]
  const wrong = Array.from({ length: n - 1 }, (_, k) => k + 1).filter(
    (s) =>
      !(a[s - 1]! < a[s]! || (a[s - 1] === a[s] && b[s - 1]! <= b[s]!)) ||
      columns[sorted.order![s]!] !== a[s],
  )
  expect(wrong).toEqual([])
})
