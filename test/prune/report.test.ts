/** Figures and pictures of what was pruned, and pruning in stages. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  blockWise,
  elementWise,
  type Layers,
  type LayerValues,
  layersFromValues,
  nOfM,
  type Pattern,
  type PruneProgress,
  prune,
  pruneInStages,
  renderMasks,
  type Stage,
  tileElementWise,
  tileVectorWise,
  tileWise,
  unionMasks,
  vectorNOfM,
} from '../../src/prune.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { wellFormed } from '../support/xml.ts'
import { drawn, sparsities } from './layer-gen.ts'

const patterns: readonly Pattern[] = [
  elementWise(),
  tileWise({ granularity: 2 }),
  tileElementWise({ granularity: 3, delta: 0.05 }),
  blockWise({ rows: 2, cols: 2 }),
]
const norm = (x: readonly number[]): number => Math.sqrt(x.reduce((s, v) => s + v * v, 0))

property([drawn(), sparsities(), fc.constantFrom(...patterns)], { numRuns: runs(50) })(
  'the report describes the masks',
  async ({ list, layers, exclude, limits }, sparsity, pattern) => {
    fc.pre(sparsity < 0.95)
    const pruned = await prune(layers, { pattern, sparsity, exclude, limits })
    const { report } = pruned
    expect(JSON.parse(JSON.stringify(report))).toEqual(report)
    const kept = unionMasks(pruned).map((m) => [...m])
    const all: number[] = []
    const held: number[] = []
    list.forEach(({ name, rows, cols, weights }, k) => {
      const excluded = exclude.includes(name)
      const left = [...weights].map((w, i) => w * kept[k]![i]!)
      const rowsKept = Array.from({ length: rows }, (_, r) =>
        kept[k]!.slice(r * cols, (r + 1) * cols),
      ).filter((r) => r.includes(1))
      const n = kept[k]!.filter((x) => x === 1).length
      expect(report.layers[k]).toMatchObject({
        name,
        rows,
        cols,
        excluded,
        kept: n,
        denseBytes: 4 * rows * cols,
        keptOutputs: rowsKept.length,
      })
      expect(report.layers[k]!.sparsity).toBeCloseTo(1 - n / (rows * cols))
      expect(report.layers[k]!.retainedNorm).toBeCloseTo(
        norm([...weights]) === 0 ? 1 : norm(left) / norm([...weights]),
      )
      expect(report.layers[k]!.tiles).toBe(excluded || !pruned.tiles ? null : pruned.tiles[k]!.length)
      if (excluded) return
      all.push(...weights)
      held.push(...left)
    })
    const pruning = report.layers.filter((l) => !l.excluded)
    const sum = (of: 'kept' | 'denseBytes' | 'patternBytes'): number => pruning.reduce((s, l) => s + l[of], 0)
    expect(report).toMatchObject({
      pattern: pattern.text,
      target: sparsity,
      elements: all.length,
      kept: sum('kept'),
      denseBytes: sum('denseBytes'),
      patternBytes: sum('patternBytes'),
    })
    expect(report.sparsity).toBeCloseTo(1 - report.kept / all.length)
    expect(report.retainedNorm).toBeCloseTo(norm(all) === 0 ? 1 : norm(held) / norm(all))
  },
)

property([drawn(), sparsities(), fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined })], {
  numRuns: runs(30),
})('layers that keep a smaller fraction are named', async ({ layers, exclude }, sparsity, warnBelow) => {
  fc.pre(sparsity < 0.95)
  const { report } = await prune(layers, { pattern: elementWise(), sparsity, exclude, warnBelow })
  const least = warnBelow ?? 0.1 * (1 - sparsity)
  expect(report.warnBelow).toBe(least)
  expect(report.sparseLayers).toEqual(
    report.layers.filter((l) => !l.excluded && l.kept / (l.rows * l.cols) < least).map((l) => l.name),
  )
})

test('a layer of smaller weights, which keeps 1 of 6,144, and none if a limit allows that', async () => {
  const layer = (name: string, scale: number) => ({
    name,
    rows: 96,
    cols: 64,
    weights: Float32Array.from({ length: 96 * 64 }, (_, i) => scale * (1 + (i % 13))),
  })
  const layers = layersFromValues([layer('large', 1), layer('small', 1e-3)])
  const { report } = await prune(layers, { pattern: elementWise(), sparsity: 0.5 })
  expect([report.layers[1]!.kept, report.sparseLayers]).toEqual([1, ['small']])
  const all = await prune(layers, { pattern: elementWise(), sparsity: 0.5, limits: { small: 1 } })
  expect([all.report.layers[1]!.kept, all.report.sparseLayers]).toEqual([0, ['small']])
  const none = await prune(layers, { pattern: elementWise(), sparsity: 0.5, warnBelow: 0 })
  expect(none.report.sparseLayers).toEqual([])
  await expect(prune(layers, { pattern: elementWise(), sparsity: 0.5, warnBelow: 2 })).rejects.toThrow(
    'warnBelow',
  )
})

describe('bytes in a pattern', () => {
  const weights = Float32Array.from({ length: 64 }, (_, i) => (i < 32 ? 100 + i : 1 + (i % 8)))
  const layers = layersFromValues([{ name: 'w', rows: 8, cols: 8, valueBytes: 2, weights }])
  test.each([
    // 32 values with a column each, and 9 offsets.
    [elementWise(), 0.5, 32 * 6 + 36],
    // 75 %: four outputs, four of eight inputs: one tile, eight indices, six offsets.
    [tileWise({ granularity: 4 }), 0.75, 16 * 2 + 4 * (4 + 4 + 3 + 3)],
    [tileElementWise({ granularity: 4, delta: 0 }), 0.75, 16 * 2 + 4 * 14 + 36],
    // 75 %: tiles of half, and half of their values.
    [tileVectorWise({ granularity: 4 }), 0.5, 32 * 2 + 8 + 4 * (8 + 8 + 8 + 3 + 3 + 3)],
    [blockWise({ rows: 4, cols: 4 }), 0.5, 2 * 32 + 4 * (2 + 3)],
    // Values, and two bits each.
    [nOfM({ n: 2, m: 4 }), undefined, 32 * 2 + 8],
    // And three bits for each of four columns of eight.
    [vectorNOfM({ v: 4, n: 2, m: 8 }), undefined, 16 * 2 + (32 + 2 * 4 * 3) / 8],
  ] as const)('%#', async (pattern, sparsity, bytes) => {
    const { report } = await prune(layers, { pattern, ...(sparsity !== undefined && { sparsity }) })
    expect(report).toMatchObject({ denseBytes: 128, patternBytes: bytes })
  })
})

describe('stages', () => {
  property([
    drawn(),
    fc.uniqueArray(fc.integer({ min: 0, max: 90 }), { minLength: 1, maxLength: 3 }),
    fc.constantFrom(...patterns),
    // Of a stage, for all layers or the first; of some none.
    fc.array(fc.option(fc.tuple(fc.constantFrom('*', 'layer.0'), fc.constantFrom(0.2, 0.6, 0.9))), {
      minLength: 3,
      maxLength: 3,
    }),
  ])(
    'each equals pruning after the previous stage, for the given layers, within its limits',
    async ({ list, layers, exclude, limits }, percents, pattern, own) => {
      const stages = percents.sort((a, b) => a - b).map((p) => p / 100)
      const given = stages.map((sparsity, k) =>
        own[k] ? { sparsity, limits: Object.fromEntries([own[k]]) } : sparsity,
      )
      const limitsIn = (k: number): Record<string, number> =>
        Object.fromEntries(
          list.flatMap(({ name }) => {
            const [glob, limit] = own[k] ?? ['', 1]
            const both = [limits[name], glob === '*' || glob === name ? limit : undefined]
            const given = both.filter((l) => l !== undefined)
            return given.length > 0 ? [[name, Math.min(...given)]] : []
          }),
        )
      // Training turns importance around.
      const tuned = (k: number): Layers =>
        layersFromValues(
          list.map(
            (l): LayerValues => ({
              ...l,
              weights: l.weights.map((w) => (k % 2 ? 1 / (1 + Math.abs(w)) : w)),
            }),
          ),
        )
      const seen: Stage[] = []
      const between = async (stage: Stage) => {
        seen.push(stage)
        return tuned(seen.length)
      }
      const made = await pruneInStages(layers, { pattern, stages: given, between, exclude, limits })
      let after: readonly Uint8Array[] | undefined
      for (const [k, sparsity] of stages.entries()) {
        const one = await prune(k === 0 ? layers : tuned(k), {
          pattern,
          sparsity,
          exclude,
          limits: limitsIn(k),
          ...(after && { previousMasks: after }),
        })
        const { masks, rest, report } = k < stages.length - 1 ? seen[k]! : made
        expect({ masks, rest, report }).toEqual({ masks: one.masks, rest: one.rest, report: one.report })
        expect(made.reports[k]).toEqual(one.report)
        after = unionMasks(one)
      }
      expect(seen.map((s) => s.sparsity)).toEqual(stages.slice(0, -1))
      expect(made.reports.length).toBe(stages.length)
    },
  )

  test('pruned single elements stay pruned, whatever is learned in between', async () => {
    const weights = Float32Array.of(1, 2, 3, 4)
    const first = layersFromValues([{ name: 'w', rows: 1, cols: 4, weights }])
    const learned = layersFromValues([{ name: 'w', rows: 1, cols: 4, weights: weights.toReversed() }])
    const pattern = elementWise()
    const { masks } = await pruneInStages(first, {
      pattern,
      stages: [0.5, 0.75],
      between: async () => learned,
    })
    expect([...masks[0]!]).toEqual([0, 0, 1, 0])
    expect([
      ...(await pruneInStages(first, { pattern, stages: [0.5, 0.75], between: async () => {} })).masks[0]!,
    ]).toEqual([0, 0, 0, 1])
  })
})

test('progress: every layer of every pass, except excluded ones', async () => {
  const layer = (name: string) => ({ name, rows: 4, cols: 4, weights: new Float32Array(16) })
  const seen: PruneProgress[] = []
  const onProgress = (p: PruneProgress): void => {
    seen.push(p)
  }
  await prune(layersFromValues(['a', 'b', 'c'].map(layer)), {
    pattern: tileWise({ granularity: 2 }),
    sparsity: 0.5,
    exclude: ['b'],
    onProgress,
  })
  const passes = ['outputs', 'inputs of tiles', 'report']
  expect(seen).toEqual(
    passes.flatMap((pass) => [
      { pass, layer: 'a', done: 1, of: 2 },
      { pass, layer: 'c', done: 2, of: 2 },
    ]),
  )
})

/** Squares of the legend: 0, 1/8 … 1 of the weights kept. */
const LEGEND = 9

describe('pictures', () => {
  property([drawn(), sparsities(), fc.constantFrom(...patterns), fc.string()])(
    'well-formed, with a frame for each layer',
    async ({ layers }, sparsity, pattern, title) => {
      fc.pre(sparsity < 0.95)
      const svg = renderMasks(
        { ...(await prune(layers, { pattern, sparsity })), shapes: layers.shapes },
        title,
      )
      expect(wellFormed(svg).filter((n) => n === 'rect').length).toBe(LEGEND + layers.shapes.length)
    },
  )

  test('regions are as dark as their fraction of kept weights', () => {
    const mask = Uint8Array.from({ length: 104 * 104 }, (_, i) => (i < 5408 ? 1 : i % 2))
    const svg = renderMasks({ shapes: [{ name: 'half', rows: 104, cols: 104 }], masks: [mask] })
    expect([...svg.matchAll(/fill-opacity="([^"]*)"/g)].map((m) => m[1]).slice(LEGEND)).toEqual(['0.5', '1'])
    expect(svg).toContain('75 % kept')
    const rest = [mask.map((x) => 1 - x)]
    expect(renderMasks({ shapes: [{ name: 'all', rows: 104, cols: 104 }], masks: [mask], rest })).toContain(
      '100 % kept',
    )
  })

  test('at most about a megabyte', () => {
    const noise = Uint8Array.from({ length: 64 * 64 }, (_, i) => (Math.imul(i, 0x9e3779b1) >>> 13) & 1)
    for (const n of [1, 72, 1500]) {
      const shapes = Array.from({ length: n }, (_, k) => ({ name: `layer.${k}`, rows: 64, cols: 64 }))
      const svg = renderMasks({ shapes, masks: shapes.map(() => noise) })
      expect(svg.length).toBeLessThan(1.3e6)
      const names = wellFormed(svg)
      expect(names.length).toBeGreaterThan(Math.min(n, 1000) * 5)
      expect(names.filter((name) => name === 'rect').length).toBe(LEGEND + Math.min(n, 1000))
    }
  })
})

test('layers of equal weights lose equally by root-mean-square, and the one with long vectors everything by length', async () => {
  // Normal weights (Box–Muller) of an attention matrix and of the two of a feed-forward network.
  let seed = 12345
  const random = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647
  const normal = (): number => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random())
  const layers = layersFromValues(
    [
      ['q', 96, 96],
      ['up', 384, 96],
      ['down', 96, 384],
    ].map(([name, rows, cols]) => ({
      name: name as string,
      rows: rows as number,
      cols: cols as number,
      weights: Float32Array.from({ length: (rows as number) * (cols as number) }, normal),
    })),
  )
  const pattern = tileWise({ granularity: 16 })
  const sparsity = 0.75
  const { report: root } = await prune(layers, { pattern, sparsity })
  expect(root.normalise).toBe('root')
  for (const { sparsity: s, keptOutputs } of root.layers) {
    expect(Math.abs(s - sparsity)).toBeLessThan(0.2)
    expect(keptOutputs).toBeGreaterThan(20)
  }
  const { report: length } = await prune(layers, {
    pattern,
    sparsity,
    normalise: 'length',
    limits: { '*': 1 },
  })
  expect(length.normalise).toBe('length')
  expect(length.layers[2]).toMatchObject({ name: 'down', keptOutputs: 0, sparsity: 1 })
  expect(root.retainedNorm).toBeGreaterThan(length.retainedNorm)
})
