/** Terms of the cost model against the rows themselves: bytes that are touched, steps of searches, what meets, what waits. */
import { fc, test as law } from '@fast-check/vitest'
import { expect } from 'vitest'
import { coords, load } from '../../src/node.ts'
import type { Terms } from '../../src/search/model/terms.ts'
import { predictor } from '../../src/search.ts'
import { runs } from '../support/cases.ts'

const spmv = (await load('sparsetile/kernels/spmv.spt')).kernel('spmv')
const COLUMNS = 64
const rows = fc.array(fc.integer({ min: 0, max: COLUMNS }), { minLength: 1, maxLength: 40 })

const termsOf = (lengths: readonly number[], name: string, ...args: number[]): Terms => {
  const A = coords(
    [lengths.length, COLUMNS],
    [lengths.flatMap((n, i) => Array<number>(n).fill(i)), lengths.flatMap((n) => [...Array(n).keys()])],
  )
  return predictor(spmv, { device: 'cuda', inputs: { tensors: { A } } })(spmv.schedule(name, ...args)).terms
}
const sum = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0)

law.prop([rows], { numRuns: runs(20) })(
  'bytes that are touched and written are those of the arrays',
  (lengths) => {
    const [m, nonzeros] = [lengths.length, sum(lengths)]
    const t = termsOf(lengths, 'gpu')
    expect(t.writtenFootprint).toBe(4 * m)
    // Offsets, coordinates and values, x, y.
    expect(t.footprint).toBe(4 * (m + 1) + 8 * nonzeros + 4 * COLUMNS + 4 * m)
    expect(t.padding).toBeCloseTo(1)
  },
)

law.prop([rows.filter((r) => sum(r) > 0)], { numRuns: runs(20) })(
  'searches take the logarithm of the rows, and there are none without',
  (lengths) => {
    const none = termsOf(lengths, 'gpu')
    const some = termsOf(lengths, 'balanced', 128, 8, 4)
    expect([none.searches, none.waveProbes, none.longestProbes]).toEqual([0, 0, 0])
    expect(some.longestProbes).toBeCloseTo(Math.log2(lengths.length + 1))
    expect(some.waveProbes).toBeCloseTo(some.longestProbes)
  },
)

law.prop([rows.filter((r) => Math.min(...r) > 8)], { numRuns: runs(20) })(
  'lanes of a row exchange what they have, and a thread by itself does not',
  (lengths) => {
    const [alone, lanes] = [termsOf(lengths, 'gpu'), termsOf(lengths, 'cooperative', 4, 8, 2)]
    expect([alone.exchanges, alone.waveExchanges, alone.longestExchanges]).toEqual([0, 0, 0])
    for (const n of [lanes.exchanges, lanes.waveExchanges, lanes.longestExchanges])
      expect(n).toBeGreaterThan(0)
  },
)

law.prop([fc.array(fc.boolean(), { minLength: 2, maxLength: 40 }), fc.integer({ min: 2, max: 16 })], {
  numRuns: runs(20),
})('elements of one row meet where threads add them up, and single ones do not', (has, length) => {
  const single = has.map(Number)
  fc.pre(sum(single) > 0)
  expect(termsOf(single, 'coo', 128).conflicts).toBeCloseTo(0)
  expect(
    termsOf(
      single.map((n) => n * length),
      'coo',
      128,
    ).conflicts,
  ).toBeGreaterThan(0)
})

law.prop([rows, fc.constantFrom(8, 16, 32)], { numRuns: runs(20) })(
  'a longer row is waited for longer, by its thread and by what goes on beside it',
  (lengths, least) => {
    // Loops are unrolled by four; what is left over comes one by one.
    const [short, long] = [least, 2 * least].map((n) =>
      termsOf([...lengths.map((x) => Math.min(x - (x % 4), least)), n], 'gpu'),
    )
    for (const term of ['longestRounds', 'longestHops', 'longestMisses', 'longestWaits'] as const)
      expect(long![term], term).toBeGreaterThan(short![term])
    for (const term of ['waveRounds', 'waveHops', 'waveMisses', 'lines'] as const)
      expect(long![term], term).toBeGreaterThan(0)
    expect(long!.lines).toBeGreaterThan(short!.lines)
  },
)
