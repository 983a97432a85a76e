/** Masks are those of the reference, which sorts everything; and have the structure that their pattern promises. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import {
  blockWise,
  elementWise,
  extractTiles,
  isTileWise,
  layersFromValues,
  type Mask,
  nOfM,
  type Pattern,
  prune,
  pruneInStages,
  tileElementWise,
  tileVectorWise,
  tileWise,
  vectorNOfM,
} from '../../src/prune.ts'
import { property } from '../support/property.ts'
import { type Drawn, drawn, sparsities } from './layer-gen.ts'
import * as reference from './reference.ts'

const by = ({ normalise }: Drawn): reference.Norm => normalise ?? 'root'
const granularities = fc.constantFrom(1, 2, 3, 4, 128)
const lists = (masks: readonly Mask[]): number[][] => masks.map((m) => [...m])

/** Pruned layers alone; those that are excluded are as they were. */
async function pruned(
  { list, layers, limits, exclude, after, normalise, places }: Drawn,
  pattern: Pattern,
  s?: number,
) {
  const made = await prune(layers, {
    pattern,
    limits,
    exclude,
    ...(s !== undefined && { sparsity: s }),
    ...(after && { previousMasks: after }),
    ...(normalise && { normalise }),
  })
  list.forEach((l, k) => {
    if (places.includes(k)) return
    expect(made.masks[k]).toEqual(after?.[k] ?? new Uint8Array(l.weights.length).fill(1))
    expect(made.rest?.[k]?.some((x) => x !== 0) ?? false).toBe(false)
  })
  const of = <T>(masks: readonly T[] | undefined): T[] => places.flatMap((k) => (masks ? [masks[k]!] : []))
  return { ...made, masks: of(made.masks), rest: of(made.rest), tiles: of(made.tiles) }
}

/** As many as asked for, but for less than one vector of the largest size, unless limits are reached. */
function withinOneVector(
  masks: readonly (readonly number[])[],
  s: number,
  limits: readonly number[],
  vector: number,
): void {
  const all = masks.flat()
  const most = reference.target(s, all.length)
  const lostOf = (mask: readonly number[]): number => mask.filter((x) => x === 0).length
  const isFull = masks.some((m, k) => lostOf(m) + vector > reference.target(limits[k]!, m.length))
  expect(lostOf(all)).toBeLessThanOrEqual(most)
  if (!isFull) expect(lostOf(all)).toBeGreaterThan(most - vector)
}

describe('masks equal the reference', () => {
  property([drawn(), sparsities()])('elements', async (d, s) => {
    const masks = lists((await pruned(d, elementWise(), s)).masks)
    expect(masks).toEqual(reference.ew(d.chosen, s, d.most(1)))
    withinOneVector(masks, s, d.most(1), 1)
  })

  const alike = fc.record({
    // From 1 on by the least steps that there are.
    steps: fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 30 }),
    limit: fc.constantFrom(0.25, 0.5, 0.75, 1),
  })
  property([fc.array(alike, { minLength: 2, maxLength: 4 }), sparsities()])(
    'elements with equal high bits, in layers with limits',
    async (list, sparsity) => {
      const of = list.map(({ steps }) => ({
        rows: 1,
        cols: steps.length,
        e: steps.map((k) => 1 + k * 2 ** -23),
      }))
      const layers = layersFromValues(
        of.map((m, k) => ({ ...m, name: `${k}`, weights: Float32Array.from(m.e) })),
      )
      const limits = Object.fromEntries(list.map(({ limit }, k) => [`${k}`, limit]))
      const { masks } = await prune(layers, { pattern: elementWise(), sparsity, limits })
      const most = list.map((l) => l.limit)
      expect(lists(masks)).toEqual(reference.ew(of, sparsity, most))
    },
  )

  property([drawn(), sparsities(), fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 5 })])(
    'blocks',
    async (d, s, rows, cols) => {
      const masks = lists((await pruned(d, blockWise({ rows, cols }), s)).masks)
      expect(masks).toEqual(reference.bw(d.chosen, s, d.most(rows * cols), by(d), rows, cols))
      withinOneVector(masks, s, d.most(rows * cols), rows * cols)
    },
  )

  property([drawn(), sparsities(), granularities])('tiles', async (d, s, granularity) => {
    const { masks, tiles } = await pruned(d, tileWise({ granularity }), s)
    const expected = reference.tw(d.chosen, s, d.most(granularity), by(d), granularity)
    expect(lists(masks)).toEqual(expected.kept)
    withinOneVector(lists(masks), s, d.most(granularity), Math.min(granularity, 9))
    d.chosen.forEach(({ rows, cols }, k) => {
      expect(extractTiles(masks[k]!, rows, cols, granularity)).toEqual(tiles[k])
      const outputs = expected.tiles[k]!.filter((of) =>
        of.some((r) => masks[k]!.subarray(r * cols, (r + 1) * cols).includes(1)),
      )
      expect(tiles[k]!.map((t) => [...t.outputs])).toEqual(outputs)
    })
  })

  property([drawn(), sparsities(), granularities, fc.constantFrom(0, 0.01, 0.05, 0.3)])(
    'tiles and elements',
    async (d, s, granularity, delta) => {
      fc.pre(s + delta < 1)
      const { masks, rest, report } = await pruned(d, tileElementWise({ granularity, delta }), s)
      const expected = reference.tew(d.chosen, s, delta, d.most(granularity), by(d), granularity)
      expect(lists(masks)).toEqual(expected.kept)
      expect(lists(rest)).toEqual(expected.rest)
      const both = masks.flatMap((mask, k) => [...mask].map((x, i) => x + rest[k]![i]!))
      expect(Math.max(...both)).toBeLessThan(2)
      const lost = both.filter((x) => x === 0).length
      expect(lost).toBeLessThanOrEqual(reference.target(s, both.length))
      expect(report.kept).toBe(both.length - lost)
    },
  )

  property([drawn(0.5), sparsities(0.5), fc.constantFrom(2, 3, 4, 128)])(
    'two of four in tiles, as stored, each input used by at least one output',
    async (d, s, granularity) => {
      const expected = reference.tw(
        d.chosen,
        2 * s - 1,
        d.most(1).map((l) => 2 * l - 1),
        by(d),
        granularity,
        2,
      )
      const held = (k: number, r: number): number[] => {
        const { cols } = d.chosen[k]!
        return [...Array(cols).keys()].filter((c) => expected.kept[k]![r * cols + c] === 1)
      }
      const listed = d.chosen.map((m, k) => {
        // All before two of four: those of a tile have its inputs.
        const before = expected.tiles[k]!.flatMap((outputs) => {
          const inputs = held(k, outputs[0]!)
          return inputs.length === 0 ? [] : [{ outputs, inputs }]
        })
        for (const { outputs, inputs } of before) reference.twoOfFour(m, outputs, inputs, expected.kept[k]!)
        return before.map(({ outputs, inputs }) => ({
          outputs,
          inputs: outputs.length === 1 ? held(k, outputs[0]!) : inputs,
        }))
      })
      const made = await pruned(d, tileVectorWise({ granularity }), s).catch((e) => e as SptError)
      const beyond = expected.kept.some(
        (kept, k) => kept.filter((x) => x === 0).length > reference.target(d.most(1)[k]!, kept.length),
      )
      if (beyond || made instanceof SptError) {
        expect([beyond, made]).toMatchObject([true, { diagnostics: [{ code: 'prune/limit' }] }])
        // A last tile of one output alone, of a layer in which none is pruned.
        expect(d.chosen.some((m) => m.rows % granularity === 1)).toBe(true)
        return
      }
      const { masks, tiles } = made
      d.chosen.forEach((m, k) => {
        const lists = listed[k]!
        expect(tiles[k]!.map((t) => ({ outputs: [...t.outputs], inputs: [...t.inputs] }))).toEqual(lists)
        for (const { outputs, inputs } of lists) {
          expect(outputs.length > 1 || m.rows % granularity === 1).toBe(true)
          for (const c of inputs) expect(outputs.some((r) => masks[k]![r * m.cols + c] === 1)).toBe(true)
          for (const r of outputs)
            for (let from = 0; from < inputs.length; from += 4) {
              const four = inputs.slice(from, from + 4)
              const n = four.filter((c) => masks[k]![r * m.cols + c] === 1).length
              expect(n).toBe(Math.min(2, four.length))
            }
        }
      })
      expect(lists(masks)).toEqual(expected.kept)
    },
  )
})

property([drawn(0.75), fc.integer({ min: 1, max: 9 }), fc.integer({ min: 0, max: 8 })])(
  'n of m: the best of neighbours',
  async (d, n, more) => {
    const m = n + more
    fc.pre(1 - n / m <= 0.75)
    const { masks } = await pruned(d, nOfM({ n, m }))
    const expected = d.chosen.map((layer) => {
      const kept = layer.e.map(() => 1)
      for (let r = 0; r < layer.rows; r++)
        for (let c = 0; c < layer.cols; c += m)
          reference.keepBest(
            layer,
            Array.from({ length: Math.min(m, layer.cols - c) }, (_, k) => r * layer.cols + c + k),
            n,
            kept,
          )
      return kept
    })
    expect(lists(masks)).toEqual(expected)
  },
)

property([
  drawn(1),
  fc.integer({ min: 1, max: 5 }),
  fc.integer({ min: 1, max: 4 }),
  fc.integer({ min: 4, max: 9 }),
])('v:n:m: four columns of m for v rows, n of them for each', async (d, v, n, m) => {
  const { masks } = await pruned(d, vectorNOfM({ v, n, m }))
  d.chosen.forEach(({ rows, cols, e }, k) => {
    for (let r = 0; r < rows; r += v)
      for (let c = 0; c < cols; c += m) {
        const down = Array.from({ length: Math.min(v, rows - r) }, (_, i) => r + i)
        const columns = Array.from({ length: Math.min(m, cols - c) }, (_, i) => c + i)
        const score = (col: number): number =>
          reference.norm(
            down.map((row) => e[row * cols + col]!),
            by(d),
          )
        const four = columns.sort((a, b) => score(a) - score(b)).slice(-4)
        for (const row of down) {
          const places = four.sort((a, b) => a - b).map((col) => row * cols + col)
          const kept = places.sort((a, b) => e[a]! - e[b]!).slice(-n)
          const given = columns.map((col) => row * cols + col).filter((i) => masks[k]![i] === 1)
          expect(given.sort((a, b) => a - b)).toEqual(kept.sort((a, b) => a - b))
        }
      }
  })
})

const shapes = fc.tuple(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 8 }))
property([
  shapes.chain(([rows, cols]) =>
    fc.record({
      rows: fc.constant(rows),
      cols: fc.constant(cols),
      mask: fc.array(fc.constantFrom(0, 1, 1, 1), { minLength: rows * cols, maxLength: rows * cols }),
    }),
  ),
  granularities,
])('a mask is tile-wise if rows of a tile are equal', ({ rows, cols, mask }, granularity) => {
  const lines = Array.from({ length: rows }, (_, r) => mask.slice(r * cols, (r + 1) * cols).join(''))
  const held = lines.filter((l) => l.includes('1'))
  const same = held.every((l, k) => l === held[k - (k % granularity)])
  expect(isTileWise(Uint8Array.from(mask), rows, cols, granularity)).toBe(same)
})

describe('apriori tuning', () => {
  property([drawn(), sparsities(), fc.constantFrom(0, 0.5, 0.9), granularities])(
    'prunes as after an element-wise stage, whose masks are not part of the result',
    async (d, s, apriori, granularity) => {
      const pattern = tileWise({ granularity })
      const settings = {
        limits: d.limits,
        exclude: d.exclude,
        ...(d.normalise && { normalise: d.normalise }),
      }
      const before = { ...settings, ...(d.after && { previousMasks: d.after }) }
      // The limits of tiles apply to the elements, too.
      const few = { ...elementWise(), leastKept: pattern.leastKept! }
      const elements = await prune(d.layers, { ...before, pattern: few, sparsity: apriori })
      const expected = await prune(d.layers, {
        ...settings,
        pattern,
        sparsity: s,
        previousMasks: elements.masks,
      })
      const made = await prune(d.layers, { ...before, pattern, sparsity: s, apriori })
      for (const k of d.places) expect(made.masks[k]).toEqual(expected.masks[k])
    },
  )

  test('a sparsity of 1 is rejected, in a stage too', async () => {
    const layers = layersFromValues([{ name: 'a', rows: 2, cols: 2, weights: new Float32Array(4) }])
    const pattern = tileWise({ granularity: 2 })
    for (const made of [
      prune(layers, { pattern, sparsity: 0.5, apriori: 1 }),
      pruneInStages(layers, { pattern, stages: [{ sparsity: 0.25, apriori: 1 }, 0.5] }),
    ])
      await expect(made).rejects.toMatchObject({ diagnostics: [{ code: 'api/argument' }] })
  })
})

test('a layer of small weights keeps a tile, unless a limit says otherwise', async () => {
  const layer = (name: string, scale: number) => ({
    name,
    rows: 16,
    cols: 16,
    weights: Float32Array.from({ length: 256 }, (_, k) => scale * (1 + ((k * 37) % 101))),
  })
  const layers = layersFromValues([layer('large', 1), layer('small', 1e-3)])
  for (const pattern of [tileWise({ granularity: 4 }), blockWise({ rows: 4, cols: 4 }), elementWise()]) {
    const kept = async (limits: Record<string, number>): Promise<number> => {
      const { masks } = await prune(layers, { pattern, sparsity: 0.5, limits })
      return masks[1]!.filter((x) => x === 1).length
    }
    expect(await kept({})).toBeGreaterThanOrEqual(pattern.leastKept!)
    expect(await kept({ small: 1 })).toBe(0)
  }
})
