/** Addresses that instructions take lie constants apart, from bases that are computed once. */
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'

test('tiles of one stage in shared memory have a base for each column, and constants', async () => {
  const kernel = (await load('kernels/ragged-attention.spt')).kernel('ragged_attention<f16>')
  const text = kernel.schedule('mma').emit('cuda').at(-1)!.text
  const bases = [...text.matchAll(/const int (at_\w+) = (at_\w+) \+ (1024|2048|3072);/g)].map((m) => m[2])
  // Of V, 16 × 16 in 4 columns: the first row of tiles has four, all others are constants away.
  expect(bases).toHaveLength(12)
  expect(new Set(bases).size).toBe(4)
})
