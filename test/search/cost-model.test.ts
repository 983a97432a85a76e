/** The cost model: statistics by brute force, sums of trees, finite predictions for all schedules, and its order as a prior. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DEFAULT_BOOSTING, fitTrees } from '../../src/cost-model/learned/boosting.ts'
import { FEATURE_NAMES } from '../../src/cost-model/learned/features.ts'
import { evaluateTrees } from '../../src/cost-model/learned/model.ts'
import { recurrenceOf, reuseWithin, weightedRecurrence } from '../../src/cost-model/matrix/index-facts.ts'
import { drawSample } from '../../src/cost-model/matrix/rows.ts'
import { statisticsOf } from '../../src/cost-model/matrix/statistics.ts'
import { meanMaximaOf } from '../../src/cost-model/matrix/structure.ts'
import { longestOverMean } from '../../src/cost-model/threads/thread-groups.ts'
import { coords, load } from '../../src/node.ts'
import { costModel, costPrior, predictor, search, space, useCostModel } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { refusal } from '../support/refusal.ts'

const matrices = fc
  .record({ rows: fc.integer({ min: 1, max: 40 }), columns: fc.integer({ min: 1, max: 40 }) })
  .chain(({ rows, columns }) =>
    fc
      .uniqueArray(fc.integer({ min: 0, max: rows * columns - 1 }), { maxLength: 120 })
      .map((cells) => ({ rows, columns, cells: cells.sort((a, b) => a - b) })),
  )

property([matrices], { numRuns: runs(60) })(
  'statistics equal those of the elements',
  ({ rows, columns, cells }) => {
    const at = cells.map((c) => [Math.floor(c / columns), c % columns] as const)
    const indptr = Array.from({ length: rows + 1 }, (_, r) => at.filter(([i]) => i < r).length)
    const s = statisticsOf({ rows, columns, indptr, indices: at.map(([, j]) => j) })
    const lengths = Array.from({ length: rows }, (_, r) => at.filter(([i]) => i === r).length)
    const different = (of: (i: number, j: number) => string): number =>
      new Set(at.map(([i, j]) => of(i, j))).size
    expect(s.nonzeros).toBe(cells.length)
    expect(s.rowLengths.longest).toBe(Math.max(...lengths))
    expect(s.emptyRows).toBeCloseTo(lengths.filter((n) => n === 0).length / rows)
    for (const [w, reuse] of s.reuse) {
      const groups = different((i, j) => `${Math.floor(i / w)} ${j}`)
      expect(reuse).toBeCloseTo(groups === 0 ? 1 : cells.length / groups)
    }
    for (const [b, density] of s.blockDensity) {
      const blocks = different((i, j) => `${Math.floor(i / b)} ${Math.floor(j / b)}`)
      if (blocks > 0) expect(density).toBeCloseTo(cells.length / (blocks * b * b))
    }
    const pairs = lengths.flatMap((a) => lengths.map((b) => Math.abs(a - b))).reduce((a, b) => a + b, 0)
    if (cells.length > 0) expect(s.rowGini).toBeCloseTo(pairs / (2 * rows * cells.length))
  },
)

const coordinates = fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 40 })

property([coordinates, fc.integer({ min: 0, max: 6 }), fc.constantFrom(1, 8)], { numRuns: runs(60) })(
  'recurrence gives the overlap of windows, as by enumeration',
  (values, power, per) => {
    const window = 2 ** power
    let [elements, different] = [0, 0]
    for (let from = 1 - window; from < values.length; from++) {
      const own = values.slice(Math.max(0, from), from + window).map((v) => Math.floor(v / per))
      elements += own.length
      different += new Set(own).size
    }
    const r = recurrenceOf(values, 13, per)
    expect(reuseWithin(r, window)).toBeCloseTo(elements / different)
    // What goes on alike is looked at as far as it says something.
    const often = Array.from({ length: 64 }, () => values).flat()
    const whole = recurrenceOf(often, 13)
    const part = recurrenceOf(often, 13, 1, 32 * values.length)
    expect(part.elements).toBe(whole.elements)
    expect(part.maxFrequency).toBe(whole.maxFrequency)
    const near = Math.min(window, 4)
    expect(Math.abs(reuseWithin(part, near) / reuseWithin(whole, near) - 1)).toBeLessThan(0.1)
    // What bitmaps are: few numbers of very many.
    expect(
      recurrenceOf(
        values.map((v) => v * 2 ** 27),
        2 ** 31,
      ),
    ).toEqual(recurrenceOf(values, 13))
    const most = Math.max(...values.map((v) => values.filter((x) => x === v).length))
    if (per === 1) expect(r.maxFrequency).toBe(most)
    const twice = weightedRecurrence([
      { value: r, weight: 1 },
      { value: r, weight: 3 },
    ])
    expect(twice.elements).toBe(4 * values.length)
    expect(reuseWithin(twice, window)).toBeCloseTo(reuseWithin(r, window))
    const between = reuseWithin(r, 1.5 * window)
    const [low, high] = [reuseWithin(r, window), reuseWithin(r, 2 * window)]
    expect(between >= low - 1e-9 && between <= high + 1e-9).toBe(true)
  },
)

function offsetsOf(lengths: readonly number[]): number[] {
  let at = 0
  return [0, ...lengths.map((n) => (at += n))]
}

property([fc.array(fc.nat(20), { minLength: 1, maxLength: 40 }), fc.nat(5)], { numRuns: runs(40) })(
  'lockstep segments take as long as the longest',
  (lengths, power) => {
    const offsets = offsetsOf(lengths)
    const size = 2 ** power
    const groups = Array.from({ length: Math.ceil(lengths.length / size) }, (_, g) =>
      Math.max(...lengths.slice(g * size, (g + 1) * size)),
    )
    const mean = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length
    const longest = meanMaximaOf(offsets)
    expect(longest[power]).toBeCloseTo(mean(groups))
    const sum = mean(lengths)
    expect(longestOverMean(longest, size)).toBeCloseTo(sum === 0 ? 1 : mean(groups) / sum)
  },
)

property([fc.array(fc.nat(300), { minLength: 30, maxLength: 300 }), fc.integer({ min: 64, max: 2000 })], {
  numRuns: runs(40),
})('samples of rows represent all rows, and the longest row itself', (lengths, elements) => {
  const longest = 3 * elements + 300
  const long = [...lengths, longest]
  const indptr = offsetsOf(long)
  const rows = long.length
  const indices = long.flatMap((n) => Array.from({ length: n }, (_, k) => k))
  const parts = drawSample(
    { rows, columns: longest, indptr, indices },
    elements,
    Number.POSITIVE_INFINITY,
  ).strata
  expect(parts.reduce((n, p) => n + p.rows * p.weight, 0)).toBeCloseTo(rows)
  const alone = parts.find((p) => p.weight === 1 && p.tensor.coords[1]!.some((c) => c === longest - 1))
  expect(alone).toBeDefined()
})

property([fc.uniqueArray(fc.nat(299_999), { maxLength: 40 }), fc.integer({ min: 1, max: 5 })], {
  numRuns: runs(4),
})('numerous empty rows are rare in a sample', (held, length) => {
  const rows = 300_000
  const lengths = new Uint8Array(rows)
  for (const r of held) lengths[r] = length
  const indptr = new Int32Array(rows + 1)
  for (let r = 0; r < rows; r++) indptr[r + 1] = indptr[r]! + lengths[r]!
  const indices = held.flatMap(() => Array.from({ length }, (_, k) => k))
  const parts = drawSample({ rows, columns: length, indptr, indices }, 64, Number.POSITIVE_INFINITY).strata
  expect(parts.reduce((n, p) => n + p.rows * p.weight, 0)).toBeCloseTo(rows)
  expect(parts.reduce((n, p) => n + p.rows, 0)).toBeLessThanOrEqual(16 * (held.length + 1) + 1)
  const stands = parts.reduce((n, p) => n + p.weight * p.tensor.coords[0]!.length, 0)
  if (held.length * length <= 64) expect(stands).toBeCloseTo(held.length * length)
})

property(
  [
    fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9 })), {
      minLength: 20,
      maxLength: 60,
    }),
  ],
  {
    numRuns: runs(8),
  },
)('boosted trees approximate their training data', (points) => {
  const rows = points.map(([a, b]) => Float64Array.of(a, b))
  const targets = points.map(([a, b]) => (a > 4 ? 3 : -1) + 0.1 * b)
  const trees = fitTrees(
    rows,
    targets,
    targets.map(() => 1),
    { ...DEFAULT_BOOSTING, minLeafRows: 1, shrink: 0.1 },
  )
  const error = (of: (k: number) => number): number =>
    targets.reduce((n, t, k) => n + (t - of(k)) ** 2, 0) / targets.length
  const mean = targets.reduce((a, b) => a + b, 0) / targets.length
  const left = error((k) => evaluateTrees(trees, rows[k]!))
  expect(left).toBeLessThanOrEqual(0.05 * error(() => mean) + 0.02)
})

const A = coords(
  [60, 50],
  [
    Array.from({ length: 240 }, (_, k) => k % 60),
    Array.from({ length: 240 }, (_, k) => (k * 7 + (k % 60)) % 50),
  ],
)

describe.each(['spmm', 'sddmm', 'spmv', 'softmax'] as const)('%s', (name) => {
  test('all schedules have finite predictions, explained by parts', async () => {
    const program = await load(`sparsetile/kernels/${name}.spt`)
    const kernel = program.kernel(name)
    const needsWidth = kernel.source.params.some((p) => p.name === 'd')
    const inputs = { tensors: { A }, params: needsWidth ? { d: 64 } : {} }
    const predict = predictor(kernel, { inputs })
    let found = 0
    for (const s of kernel.schedules) {
      if (kernel.parameters(s).some((p) => p.required)) continue
      const { milliseconds, parts, correction, terms } = predict(kernel.schedule(s))
      const all = [milliseconds, correction, ...Object.values(parts), ...Object.values(terms)]
      expect([s, all.every((x) => Number.isFinite(x) && x >= 0)]).toEqual([s, true])
      expect(milliseconds).toBeGreaterThan(0)
      found++
    }
    expect(found).toBeGreaterThan(2)
  })
})

property([matrices, fc.constantFrom(16, 32)], { numRuns: runs(12) })(
  'gathered elements, and repeated updates, are counted exactly',
  async ({ rows, columns, cells }, d) => {
    fc.pre(cells.length > 0)
    const at = cells.map((c) => [Math.floor(c / columns), c % columns] as const)
    const M = coords([rows, columns], [at.map(([i]) => i), at.map(([, j]) => j)])
    const lengths = Array.from({ length: rows }, (_, r) => at.filter(([i]) => i === r).length)
    const longest = Math.max(...lengths)
    const termsOf = async (name: string, schedule: string, params: readonly number[]) => {
      const kernel = (await load(`sparsetile/kernels/${name}.spt`)).kernel(name)
      const sizes = kernel.source.params.some((p) => p.name === 'd') ? { d } : {}
      return predictor(kernel, { inputs: { tensors: { A: M }, params: sizes } })(
        kernel.schedule(schedule, ...params),
      ).terms
    }
    const n = cells.length
    // Rows of B; of X and Y by the coordinates of an element; elements of x.
    expect((await termsOf('spmm', 'vector', [4, 8, 4, 4])).gatherElements).toBeCloseTo(n * d)
    expect((await termsOf('sddmm', 'edges', [d, 16, 1, 4, 4])).gatherElements).toBeCloseTo(2 * n * d)
    const coo = await termsOf('spmv', 'coo', [128])
    expect(coo.gatherElements).toBeCloseTo(n)
    expect(coo.contention).toBe(longest)
    // A strip of one row reads a row of B for each of its columns, once for all of a vector, and two at a time.
    const pairs = lengths.reduce((sum, k) => sum + 2 * Math.ceil(k / 2), 0)
    const strips = await termsOf('spmm', 'strips_ordered', [1, 64, 1, 2, 4, 8, 4, 8])
    expect(strips.gatherElements).toBeCloseTo(pairs * d)
    for (const t of [coo, strips]) {
      expect(t.freshBytes).toBeLessThanOrEqual(t.loadBytes + 1e-6)
      expect(t.gatherAgain).toBeLessThanOrEqual(t.gatherBytes + 1e-6)
    }
  },
)

test('common columns of a strip are read once for all rows', async () => {
  const kernel = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
  const [rows, columns, d] = [6, 5, 32]
  const cells = Array.from({ length: rows * columns }, (_, k) => k)
  const A = coords(
    [rows, columns],
    [cells.map((k) => Math.floor(k / columns)), cells.map((k) => k % columns)],
  )
  const { terms } = predictor(kernel, { inputs: { tensors: { A }, params: { d } } })(
    kernel.schedule('strips_ordered', 2, 64, 1, 2, 4, 8, 4, 8),
  )
  // Strips of two rows; five columns, two at a time.
  expect(terms.gatherElements).toBeCloseTo((rows / 2) * 6 * d)
})

test('the longest thread takes as long as the longest row, however large the matrix is', async () => {
  const kernel = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
  const rows = 40_000
  const hub = 30_000
  const long = Array.from({ length: hub }, (_, k) => k)
  const short = Array.from({ length: 4 * rows }, (_, k) => Math.floor(k / 4))
  const i = [...short.slice(0, 400), ...long.map(() => 100), ...short.slice(400)]
  const j = [...short.slice(0, 400).map((_, k) => k % 4), ...long, ...short.slice(400).map((_, k) => k % 4)]
  const A = coords([rows, hub], [i, j])
  const { terms } = predictor(kernel, { inputs: { tensors: { A }, params: { d: 32 } } })(
    kernel.schedule('vector', 4, 32, 4, 2),
  )
  expect(terms.longestWaits).toBeGreaterThan(hub / 2)
})

test('as a prior it orders points, with rejected points last', async () => {
  const kernel = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
  const mine = space('mine', kernel, (p) => {
    const lanes = p.number('lanes', [2, 4, 8, 16])
    const each = p.number('each', [1, 4])
    const name = p.option('name', ['balanced', 'nothing'])
    return (k) => (name === 'nothing' ? k.split('nothing', 2) : k.schedule('balanced', 8, 32, lanes, each))
  })
  const predict = predictor(kernel, { inputs: { tensors: { A }, params: { d: 64 } } })
  const prior = costPrior(mine, predict)
  const fastest = { lanes: 16, each: 4, name: 'balanced' }
  const costs = prior([fastest, { ...fastest, name: 'nothing' }])
  expect(costs[0]).toBe(predict(mine.kernel(fastest)).milliseconds)
  expect(costs[1]).toBe(Number.POSITIVE_INFINITY)
  const asked: string[] = []
  await search({
    space: mine,
    strategy: 'model',
    prior,
    trials: 1,
    evaluate: async (list) =>
      list.map(({ point }) => {
        asked.push(JSON.stringify(point))
        return { status: 'measured', timing: { median: 1, interval: [1, 1], samples: [1] } }
      }),
  })
  const all = [2, 4, 8, 16].flatMap((lanes) => [1, 4].map((each) => ({ lanes, each, name: 'balanced' })))
  const least = all.reduce((a, b) => (prior([b])[0]! < prior([a])[0]! ? b : a))
  expect(asked).toEqual([JSON.stringify(least)])
})

test('a device without a model is rejected, and models have the existing features', async () => {
  const kernel = (await load('sparsetile/kernels/spmv.spt')).kernel('spmv')
  useCostModel('webgpu', null)
  try {
    expect(refusal(() => predictor(kernel, { device: 'webgpu', inputs: { tensors: { A } } })).code).toBe(
      'search/no-model',
    )
  } finally {
    useCostModel('webgpu', undefined)
  }
  for (const kind of ['webgpu', 'cuda'] as const) expect(costModel(kind)!.features).toEqual(FEATURE_NAMES)
})

test('predictions on devices with threads are for the bound kernel that runs', async () => {
  const program = await load(`kernel totals(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer y: f32[i] out
  iterate total [i, j] as SR { y[i] += A[i, j] }
}`)
  const kernel = program.kernel()
  const is = Array.from({ length: 2000 }, (_, k) => k)
  const A = coords([2000, 2000], [is, is])
  const predict = predictor(kernel, { device: 'cuda', inputs: { tensors: { A } } })
  const bare = predict(kernel)
  expect(bare.terms).toEqual(predict(kernel.parallel()).terms)
  expect(bare.terms.blockThreads).toBeGreaterThan(1)
})
