/** Parts that are put together in place are over the dimensions of the first format that names them all. */
import { expect, test } from 'vitest'
import { coords, devices, load } from '../../src/node.ts'

const TEXT = `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-tensors.spt"
kernel sums(n: size, p: size) {
  axis i = dense_fixed(n)
  axis k = sparse_variable(i, p)
  buffer B: f32[i, k] in
  buffer C: f32[i] out
  iterate s [i, k] as SR { C[i] += B[i, k] }
}`

test.each([
  'csf where (value > 0) + csr',
  'csf where (i > 0) + csr',
  'csr where (i > 0) + csf',
  'csf where (d[0] > 0) + csf',
])('%s', async (use) => {
  const compiled = await (await load(TEXT))
    .kernel()
    .as('B', use)
    .build(await devices.cpu())
  const B = coords(
    [2, 2],
    [
      [0, 1],
      [0, 1],
    ],
    [3, -2],
  )
  expect([...(await compiled({ B })).C!.values!]).toEqual([3, -2])
})

test.each([
  ['nope where (value > 0) + csr', 'there is no format nope'],
  ['csf where (value > 0) + nope', 'there is no format nope'],
])('%s', async (use, message) => {
  const kernel = (await load(TEXT)).kernel()
  expect(() => kernel.as('B', use)).toThrow(message)
})
