/** Products whose zeros are found in each run, with our kernels on the CPU, and a loop in the library's place. */
import { expect, test } from 'vitest'
import type { Case } from '../../bench/gpu/case.ts'
import { make, maskedProduct, type Tile } from '../../bench/gpu/suites/dynamic.ts'
import { building } from '../../bench/gpu/suites/dynamic-building.ts'
import { sample } from '../support/cases.ts'
import { untimed } from './untimed.ts'

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

test('a library that is off is wrong', async () => {
  const off = (s: Parameters<typeof maskedProduct>[0]) => maskedProduct(s, [32, 1], 0.5, [40, 6, 70])
  const [c] = await untimed([KERNELS['32x1']!], off, 1 + 2 ** -6)
  expect(outcomes(c!)[0]).toEqual(['peer', 'wrong'])
})

test('building alone is checked by a product, and run with one of no columns', async () => {
  const masked = make([70, 6, 130], [1, 64], 0.3)
  const [c] = await untimed([KERNELS['1x64']!], (s) => building(s, [1, 64], 0.3, masked, []))
  expect(outcomes(c!)).toEqual([['ours', 'ok']])
})

test('tiles hold what they say', () => {
  const { A, count, shape } = make([64, 4, 256], [32, 64], 0.25)
  const held = new Set<number>()
  for (let x = 0; x < A.length; x++)
    if ((A[x]! & 0x7fff) !== 0)
      held.add(Math.floor(Math.floor(x / shape[2]) / 32) * 4 + Math.floor((x % shape[2]) / 64))
  expect(held.size).toBe(2)
  expect(count).toBe(2 * 32 * 64)
})
