/** Terms of the cost model against the rows themselves: bytes that are touched, steps of searches, what meets, what waits. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { partsOf } from '../../src/cost-model/analytic.ts'
import type { Terms } from '../../src/cost-model/terms.ts'
import { transactionsOf } from '../../src/cost-model/work/coalescing.ts'
import { expectedValue, probabilityOf } from '../../src/cost-model/work/estimates.ts'
import { add, binary, int, lt, mul, variable } from '../../src/ir/expressions/expr.ts'
import type { Buffer } from '../../src/ir/statements/loops.ts'
import { coords, load } from '../../src/node.ts'
import { costModel, predictor } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

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

property([rows], { numRuns: runs(20) })('read and written bytes equal those of the arrays', (lengths) => {
  const [m, nonzeros] = [lengths.length, sum(lengths)]
  const t = termsOf(lengths, 'gpu')
  expect(t.writtenFootprint).toBe(4 * m)
  // Offsets, coordinates and values, x unless nothing asks for it, y.
  expect(t.footprint).toBe(4 * (m + 1) + 8 * nonzeros + (nonzeros > 0 ? 4 * COLUMNS : 0) + 4 * m)
  expect(t.padding).toBeCloseTo(1)
})

property([rows.filter((r) => sum(r) > 0)], { numRuns: runs(20) })(
  'searches take the logarithm of the number of rows, and are absent without search',
  (lengths) => {
    const none = termsOf(lengths, 'gpu')
    const some = termsOf(lengths, 'balanced', 128, 8, 4)
    expect([none.searches, none.waveProbes, none.longestProbes]).toEqual([0, 0, 0])
    expect(some.longestProbes).toBeCloseTo(Math.log2(lengths.length + 1))
    expect(some.waveProbes).toBeCloseTo(some.longestProbes)
  },
)

property([rows.filter((r) => Math.min(...r) > 8)], { numRuns: runs(20) })(
  'lanes of a row exchange values, and a single thread does not',
  (lengths) => {
    const [alone, lanes] = [termsOf(lengths, 'gpu'), termsOf(lengths, 'cooperative', 4, 8, 2)]
    expect([alone.exchanges, alone.waveExchanges, alone.longestExchanges]).toEqual([0, 0, 0])
    for (const n of [lanes.exchanges, lanes.waveExchanges, lanes.longestExchanges])
      expect(n).toBeGreaterThan(0)
  },
)

property([fc.array(fc.boolean(), { minLength: 2, maxLength: 40 }), fc.integer({ min: 2, max: 16 })], {
  numRuns: runs(20),
})('elements of one row conflict if threads add them, and single ones do not', (has, length) => {
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

property([rows, fc.constantFrom(8, 16, 32)], { numRuns: runs(20) })(
  'a longer row costs more, in its thread and its neighbours',
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

/** A thread for each element, which adds it to its row: the row is searched for. */
const byElement = spmv
  .fuse(['i', 'j'], 'ij')
  .atomic('y')
  .split('ij', 64, ['block', 'thread'])
  .bind({ block: 'block.x', thread: 'thread.x' })
const updatesOf = (lengths: readonly number[]): Terms => {
  const A = coords(
    [lengths.length, COLUMNS],
    [lengths.flatMap((n, i) => Array<number>(n).fill(i)), lengths.flatMap((n) => [...Array(n).keys()])],
  )
  return predictor(spmv, { device: 'webgpu', inputs: { tensors: { A } } })(byElement).terms
}

property([rows.filter((r) => sum(r) > 0)], { numRuns: runs(20) })(
  'a result has as many atomic updates as its row has elements, also with row searches',
  (lengths) => {
    const t = updatesOf(lengths)
    expect(t.contention).toBeCloseTo(Math.max(...lengths))
    // Those that meet are among them, and no result meets itself alone.
    expect(t.retries).toBeLessThanOrEqual(t.contention * t.warps)
    expect(updatesOf(lengths.map((n) => Math.min(1, n))).conflicts).toBeCloseTo(0)
  },
)

property([rows.filter((r) => sum(r) > 0), fc.integer({ min: 1, max: 16 }), fc.integer({ min: 2, max: 4 })], {
  numRuns: runs(20),
})(
  'if updates are loops, elements of one row are predicted to take longer than those of several',
  (lengths, length, of) => {
    fc.pre(Math.max(...lengths) < of * length)
    const { coefficients } = costModel('webgpu')!
    // Those that meet in a warp are another matter.
    const cost = (t: Terms): number => partsOf({ ...t, conflicts: 0 }, coefficients).atomics
    const several = updatesOf([...lengths, ...Array<number>(of).fill(length)])
    const one = updatesOf([...lengths, of * length, ...Array<number>(of - 1).fill(0)])
    expect(one.contention).toBeGreaterThan(several.contention)
    expect(one.retries).toBeGreaterThan(several.retries)
    expect(cost(one)).toBeGreaterThan(cost(several))
  },
)

const mttkrp = (await load('sparsetile/kernels/tensor-products.spt')).kernel('mttkrp')
property([fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 6 })], {
  numRuns: runs(20),
})('updates of a result are counted through all levels of a tree', (slices, fibres, elements) => {
  const all = Array.from({ length: slices * fibres * elements }, (_, e) => e)
  const A = coords(
    [slices, fibres, elements],
    [
      all.map((e) => Math.floor(e / elements / fibres)),
      all.map((e) => Math.floor(e / elements) % fibres),
      all.map((e) => e % elements),
    ],
  )
  const given = { device: 'webgpu', inputs: { tensors: { A }, params: { d: 32 } } } as const
  const fibre = mttkrp.schedule('fibres')
  const { terms } = predictor(mttkrp, given)(fibre)
  expect(terms.contention).toBeCloseTo(fibres)
  // Without the step that keeps sums of a fibre in registers.
  const single = mttkrp
    .fuse(['i', 'j', 'k'], 'e')
    .atomic('M')
    .split('e', 8, ['block', 'thread'])
    .bind({ block: 'block.x', thread: 'thread.x' })
  expect(predictor(mttkrp, given)(single).terms.contention).toBeCloseTo(fibres * elements)
})

const digit = fc.integer({ min: 2, max: 4 })
property([fc.array(digit, { minLength: 1, maxLength: 3 }), fc.integer({ min: -9, max: 70 }), fc.boolean()], {
  numRuns: runs(100),
})('the share of digits below a bound is exact', (extents, bound, isUp) => {
  const names = extents.map((_, k) => `d${k}`)
  const strides = extents.map((_, k) => (isUp ? 1 : -1) * extents.slice(0, k).reduce((a, b) => a * b, 1))
  const terms = names.map((name, k) => mul(variable(name), int(strides[k]!)))
  const ranges = new Map(names.map((name, k) => [name, { start: k, extent: extents[k]! }]))
  const values = extents.reduce<readonly number[]>(
    (sums, n, k) => sums.flatMap((s) => Array.from({ length: n }, (_, d) => s + strides[k]! * (k + d))),
    [0],
  )
  const known = { params: new Map(), ranges, lengths: new Map(), filled: new Map() }
  const share = values.filter((v) => v < bound).length / values.length
  expect(probabilityOf(lt(terms.reduce(add), int(bound)), known)).toBeCloseTo(share)
})

test('digits with gaps are taken as uniform', () => {
  const ranges = new Map(['a', 'b'].map((name) => [name, { start: 0, extent: 2 }]))
  const known = { params: new Map(), ranges, lengths: new Map(), filled: new Map() }
  const e = lt(add(mul(variable('a'), int(10)), variable('b')), int(6))
  expect(probabilityOf(e, known)).toBe(6 / 12)
})

test('without a near cache, the last-level cache serves all reads but those of a block again', () => {
  const t = { ...termsOf([3, 1, 2], 'gpu'), gatherBytes: 100, loadBytes: 300 }
  const { nearCache: _, ...coefficients } = costModel('cuda')!.coefficients
  const bytes = (blockReuse: number): number =>
    partsOf({ ...t, blockReuse }, coefficients).cache * coefficients.cache
  expect(bytes(1)).toBeCloseTo(t.loadBytes + t.storeBytes)
  expect(bytes(4)).toBeCloseTo(t.loadBytes - 0.75 * t.gatherBytes + t.storeBytes)
})

test('quotients and remainders are expected as the kernel computes them, 0 for the divisor 0', () => {
  const known = {
    params: new Map([
      ['n', 7],
      ['zero', 0],
    ]),
    ranges: new Map(),
    lengths: new Map(),
    filled: new Map(),
  }
  const of = (op: 'div' | 'mod', by: string) => expectedValue(binary(op, int(17), variable(by)), known)
  expect([of('div', 'n'), of('mod', 'n'), of('div', 'zero'), of('mod', 'zero')]).toEqual([2, 3, 0, 0])
})

test('threads that access one element need one sector together', () => {
  const lane = { variable: 't', axis: 'thread.x', extent: 32 } as const
  const sectors = (step: number) =>
    32 *
    transactionsOf(
      { steps: new Map([['t', step]]), jumps: new Set() },
      { dtype: 'f32' } as Buffer,
      [lane],
      [],
    ).sectors
  expect([0, 1, 2, 8].map(sectors)).toEqual([1, 4, 32, 32])
})
