/** Rows that a list names, dealt out in blocks: statements that go to the elements of one row depend on no other. */
import { expect, test } from 'vitest'
import { coords, devices, load } from '../../src/node.ts'

const TEXT = `kernel shares(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer Z: f32[i] local
  buffer P: f32[i, j] out
  iterate row [i] as S {
    iterate total [j] as R { Z[i] += A[i, j] }
    iterate share [j] as S { P[i, j] = A[i, j] * Z[i] }
  }
}
import "sparsetile/kernels/formats.spt"`

test('the halves of a split of a listed axis are bound', async () => {
  const kernel = (await load(TEXT)).kernel().as('A', 'dcsr').split('io', 2)
  const bound = kernel.bind({ ioo: 'block.x', ioi: 'thread.x' })
  const A = coords(
    [5, 4],
    [
      [0, 0, 3, 4, 4],
      [1, 2, 0, 1, 3],
    ],
    [1, 2, 3, 4, 5],
  )
  const prepared = await (await bound.build(await devices.cpu(), { auto: false })).bind({ A })
  await prepared.run()
  expect([...(await prepared.get('P')).values!]).toEqual([3, 6, 9, 36, 45])
  expect((await prepared.verify()).ok).toBe(true)
})
