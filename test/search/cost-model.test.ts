/** The cost model: statistics by brute force, sums of trees, finite predictions for all schedules, and its order as a prior. */
import { fc, test as law } from '@fast-check/vitest'
import { describe, expect, test } from 'vitest'
import { boosted, USUAL } from '../../bench/model/boosting.ts'
import { coords, load, useCostModel } from '../../src/node.ts'
import { FEATURE_NAMES } from '../../src/search/model/features.ts'
import { statisticsOf } from '../../src/search/model/statistics.ts'
import { treesAt } from '../../src/search/model/trees.ts'
import { costModel, costPrior, predictor, search, space } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'

const matrices = fc
  .record({ rows: fc.integer({ min: 1, max: 40 }), columns: fc.integer({ min: 1, max: 40 }) })
  .chain(({ rows, columns }) =>
    fc
      .uniqueArray(fc.integer({ min: 0, max: rows * columns - 1 }), { maxLength: 120 })
      .map((cells) => ({ rows, columns, cells: cells.sort((a, b) => a - b) })),
  )

law.prop([matrices], { numRuns: runs(60) })(
  'statistics are those of the elements',
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

law.prop(
  [
    fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9 })), {
      minLength: 20,
      maxLength: 60,
    }),
  ],
  {
    numRuns: runs(8),
  },
)('trees come near to what they are learned from', (points) => {
  const rows = points.map(([a, b]) => Float64Array.of(a, b))
  const targets = points.map(([a, b]) => (a > 4 ? 3 : -1) + 0.1 * b)
  const trees = boosted(
    rows,
    targets,
    targets.map(() => 1),
    { ...USUAL, least: 1, shrink: 0.1 },
  )
  const error = (of: (k: number) => number): number =>
    targets.reduce((n, t, k) => n + (t - of(k)) ** 2, 0) / targets.length
  const mean = targets.reduce((a, b) => a + b, 0) / targets.length
  const left = error((k) => treesAt(trees, rows[k]!))
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

test('as a prior it says what is tried first, and refused points last', async () => {
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

test('a device without a model is refused, and models are of the features that there are', async () => {
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
