/** Dense tensors whose axes are declared in another order than they are stored in: `[i, d, c]` with c under i. */
import { expect, test } from 'vitest'
import { devices, load } from '../../src/node.ts'

const program = await load(`kernel k(m: size, n: size, e: size) {
  axis i = dense_fixed(m)
  axis d = dense_fixed(n)
  axis c = dense_fixed(i, e)
  buffer X: f32[i, d, c] in
  buffer Y: f32[i, d, c] out
  buffer Z: f32[d] out
  iterate a [i, d, c] as SSS { Y[i, d, c] = 10 * d + X[i, d, c] }
  iterate b [i, d, c] as RSR { Z[d] += X[i, d, c] }
}`)

test('values are bound and read in the order of the dimensions', async () => {
  const compiled = await program.kernel().build(await devices.cpu())
  const X = Float32Array.from({ length: 12 }, (_, q) => q)
  const prepared = await compiled.bind({ X, m: 2, n: 3, e: 2 })
  await prepared.run()
  const { Y, Z } = await prepared.outputs()
  expect([...(Y!.values as Float32Array)]).toEqual([...X].map((x, q) => x + 10 * (Math.floor(q / 2) % 3)))
  expect([...(Z!.values as Float32Array)]).toEqual([14, 22, 30])
  expect((await prepared.verify()).problems).toEqual([])
  await prepared.set(
    'X',
    X.map((x) => -x),
  )
  await prepared.run()
  expect([...((await prepared.get('Z')).values as Float32Array)]).toEqual([-14, -22, -30])
  prepared.free()
})
