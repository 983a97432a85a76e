/** Rectified layers whose zeros are drawn, with our kernels on the CPU. */
import { expect, test } from 'vitest'
import { widen } from '../../bench/gpu/blocks.ts'
import type { Case } from '../../bench/gpu/case.ts'
import { decided, quantile, RectifiedLayer, type RectifiedShape } from '../../bench/gpu/rectified-draw.ts'
import { rectifiedLayersOf } from '../../bench/gpu/suites/rectified-layer.ts'
import { ELEMENT, TILES } from '../../bench/gpu/tiles.ts'
import { untimed } from './simulated-suites.ts'

const SHAPE: RectifiedShape = { tokens: 70, inputs: 48, hidden: 130, outputs: 9 }

/** Which elements of H are not zero. */
function heldOf({ shape, X, U }: RectifiedLayer): boolean[] {
  const { tokens, inputs: k, hidden } = shape
  const [x, u] = [widen(X), widen(U)]
  return Array.from({ length: tokens * hidden }, (_, e) => {
    const [i, q] = [Math.floor(e / hidden), e % hidden]
    let sum = 0
    for (let p = 0; p < k; p++) sum += x[i * k + p]! * u[q * k + p]!
    return sum > 0
  })
}

test('tiles of H are nonzero or zero, in the requested number, whatever was before', () => {
  const layer = new RectifiedLayer(SHAPE, Date.now() & 0xffff)
  for (const [high, wide] of [...TILES, ...TILES]) {
    const way = decided(SHAPE, [high, wide], 0.3, Date.now() & 0xffff)
    layer.decide(way)
    const held = heldOf(layer)
    const tiles = new Map<string, Set<boolean>>()
    held.forEach((on, e) => {
      const at = `${Math.floor(Math.floor(e / SHAPE.hidden) / high)} ${Math.floor((e % SHAPE.hidden) / wide)}`
      tiles.set(at, (tiles.get(at) ?? new Set()).add(on))
    })
    expect([...tiles.values()].every((t) => t.size === 1)).toBe(true)
    expect([...tiles.values()].filter((t) => t.has(true)).length).toBe(Math.round(0.3 * tiles.size))
    expect(held.filter(Boolean).length).toBe(way.count)
  }
})

test('the number of single elements is about the requested one', () => {
  expect(quantile(0.5)).toBeCloseTo(0, 6)
  expect(quantile(0.05)).toBeCloseTo(1.6449, 3)
  const shape = { ...SHAPE, inputs: 300 }
  const layer = new RectifiedLayer(shape, Date.now() & 0xffff)
  layer.decide(decided(shape, ELEMENT, 0.1, 0))
  const share = heldOf(layer).filter(Boolean).length / (shape.tokens * shape.hidden)
  expect(Math.abs(share - 0.1)).toBeLessThan(0.04)
})

test('both layouts are correct, and the dispatch follows the fill ratio of H', async () => {
  const own = ['rectified_layer_f16', 'rectified_layer_rows_f16'].map(
    (kernel) => `rectified-layer.spt:${kernel}.auto`,
  )
  const patterns = [0.2, 1].map((held) => ({ tile: TILES[2]!, held }))
  const cases = await untimed(own, (s) => rectifiedLayersOf(s, patterns, SHAPE))
  const outcome = (c: Case): string[] => {
    const ours = c.entries.filter((e) => e.side === 'ours')
    return [c.suite, c.at, ...ours.map((e) => `${e.name} ${e.result}${e.note}, ${e.facts?.chosen}`)]
  }
  expect(cases.map(outcome)).toEqual([
    ['rectified-layer-neurons-32x64', '80 %', `${own[0]} ok, cpu`],
    ['rectified-layer-tokens-32x64', '80 %', `${own[1]} ok, cpu`],
    ['rectified-layer-neurons-32x64', '0 %', `${own[0]} ok, dense_cpu`],
    ['rectified-layer-tokens-32x64', '0 %', `${own[1]} ok, dense_cpu`],
  ])
})
