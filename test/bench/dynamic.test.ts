/** Products whose zeros are found in each run, with our kernels on the CPU, and a loop in the library's place. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { breakEven } from '../../bench/gpu/break-even.ts'
import type { Case } from '../../bench/gpu/case.ts'
import { heldAsked, make } from '../../bench/gpu/masked.ts'
import type { Options } from '../../bench/gpu/session.ts'
import { maskedProduct } from '../../bench/gpu/suites/dynamic.ts'
import { building, buildingOnWebgpu } from '../../bench/gpu/suites/dynamic-building.ts'
import { maskedOnWebgpu } from '../../bench/gpu/suites/dynamic-webgpu.ts'
import { TILES, type Tile, tileName, tilesAsked } from '../../bench/gpu/tiles.ts'
import { sample } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { untimed } from './simulated-suites.ts'

const KERNELS: Readonly<Record<string, string>> = {
  '32x1': 'dynamic-sparsity.spt:masked_matmul_f16.cpu',
  '1x64': 'dynamic-sparsity.spt:masked_rows_matmul_f16.cpu',
  '32x64': 'dynamic-sparsity.spt:masked_matmul_f16.cpu',
}

const CASES: readonly (readonly [Tile, number])[] = [
  [[32, 1], 0],
  [[32, 1], 0.1],
  [[1, 64], 0.5],
  [[32, 64], 1],
]

const outcomes = (c: Case): (readonly string[])[] => c.entries.map((e) => [e.side, e.result])

test.each(sample(CASES, 2))('tiles of %j, %d held: both are right', async (tile, held) => {
  const kernel = KERNELS[tile.join('x')]!
  const [c] = await untimed([kernel], (s) => maskedProduct(s, tile, held, [70, 6, 130]))
  expect(outcomes(c!)).toEqual([
    ['peer', 'ok'],
    ['ours', 'ok'],
  ])
  expect(c!.standard).toBe(kernel)
})

test('an inexact library is reported', async () => {
  const off = (s: Parameters<typeof maskedProduct>[0]) => maskedProduct(s, [32, 1], 0.5, [40, 6, 70])
  const [c] = await untimed([KERNELS['32x1']!], off, 1 + 2 ** -6)
  expect(outcomes(c!)[0]).toEqual(['peer', 'wrong'])
})

test('building alone is checked by a product, and run with one of no columns', async () => {
  const masked = make([70, 6, 130], [1, 64], 0.3)
  const [c] = await untimed([KERNELS['1x64']!], (s) => building(s, [1, 64], 0.3, masked, []))
  expect(outcomes(c!)).toEqual([['ours', 'ok']])
})

test('tiles have the requested contents', () => {
  const { A, count, shape } = make([64, 4, 256], [32, 64], 0.25)
  const held = new Set<number>()
  for (let x = 0; x < A.length; x++)
    if ((A[x]! & 0x7fff) !== 0)
      held.add(Math.floor(Math.floor(x / shape[2]) / 32) * 4 + Math.floor((x % shape[2]) / 64))
  expect(held.size).toBe(2)
  expect(count).toBe(2 * 32 * 64)
})

test('a dispatch converges to the measured variant', async () => {
  const auto = 'dynamic-sparsity.spt:masked_matmul_f16.auto'
  const chosen = async (held: number) => {
    const [c] = await untimed([auto], (s) => maskedProduct(s, [32, 64], held, [64, 6, 256]))
    const own = c!.entries.find((e) => e.side === 'ours')!
    return [own.result, own.facts?.chosen]
  }
  expect([await chosen(0.25), await chosen(1)]).toEqual([
    ['ok', 'cpu'],
    ['ok', 'dense_cpu'],
  ])
})

test('on WebGPU: a case for each type, with a dense kernel as the peer', async () => {
  const [held, shape] = [0.3, [40, 8, 70]] as const
  const own = ['masked_matmul.cpu', 'masked_matmul_f16.cpu'].map((k) => `dynamic-sparsity.spt:${k}`)
  const cases = await untimed(own, (s) => maskedOnWebgpu(s, [32, 1], held, shape))
  expect(cases.map((c) => [c.suite, c.entries.filter((e) => e.side === 'ours').map((e) => e.name)])).toEqual([
    ['dynamic-webgpu-32x1-f32', [own[0]]],
    ['dynamic-webgpu-32x1-f16', [own[1]]],
  ])
  for (const c of cases) {
    expect(c.entries.some((e) => e.side === 'peer' && e.result === 'ok')).toBe(true)
    expect(outcomes(c).filter(([side]) => side === 'ours')).toEqual([['ours', 'ok']])
  }
})

test('building on WebGPU is compared with CUDA', async () => {
  const masked = make([64, 6, 128], [1, 64], 0.3)
  const own = [KERNELS['1x64']!]
  const [c] = await untimed(own, (s) => buildingOnWebgpu(s, [1, 64], 0.3, masked))
  expect(c!.suite).toBe('dynamic-building-webgpu-1x64')
  expect(outcomes(c!).at(-1)).toEqual(['ours', 'ok'])
  expect(c!.entries.filter((e) => e.side === 'peer').map((e) => e.name)).toEqual([
    'CUDA dynamic-sparsity.spt:masked_rows_matmul_f16.m_axis',
  ])
})

test('requested tiles and fill ratios', () => {
  expect(tilesAsked(['1x64', '32x64', '3x4'], TILES).map(tileName)).toEqual(['1x64', '32x64'])
  expect(tilesAsked([], TILES)).toEqual(TILES)
  const asked = { layers: { sparsities: [0.9, 0], breakEven: false, on: 'cuda' } } as unknown as Options
  expect(heldAsked(asked, [0.5])).toEqual([0.1, 1])
  expect(heldAsked({} as Options, [0.5])).toEqual([0.5])
})

property([fc.double({ min: 0.01, max: 0.99, noNaN: true }), fc.double({ min: 1, max: 50, noNaN: true })])(
  'the break-even point is the intersection of linear times',
  (zeros, base) => {
    const [dense, all] = [base * 2, base]
    // As fast at `zeros`.
    const own = (z: number): number => all + ((dense - all) * (1 - z)) / (1 - zeros)
    const points = [0.995, 0, 0.5, 0.9].map((z) => ({ zeros: z, own: own(z), dense }))
    expect(breakEven(points)).toBeCloseTo(zeros, 6)
    expect(breakEven(points.map((p) => ({ ...p, own: dense + 1 })))).toBeUndefined()
    expect(breakEven(points.map((p) => ({ ...p, own: dense - 1 })))).toBe(0)
  },
)
