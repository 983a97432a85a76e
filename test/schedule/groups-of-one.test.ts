/** Lists in groups of one coordinate tell apart what is written at their coordinates, as longer groups do. */
import { expect, test } from 'vitest'
import { dense, devices, load } from '../../src/node.ts'

const program = (high: number, group: number): string => `format g over (i, j) {
  axis r = dense_fixed(ceildiv(i, ${high}))
  axis g = dense_variable(r, j)
  axis o = sparse_fixed(g, j, ${group})
  axis rr = dense_fixed(o, ${high})
  map (i, j) -> (i / ${high}, rank(j by i / ${high}) / ${group}, j, i % ${high})
  inverse (r, g, o, rr) -> (r * ${high} + rr, o)
}
kernel added(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer C: f32[i, j] out
  iterate add [i, j] as SS { if (A[i, j] != 0) { C[i, j] = A[i, j] + 1 } }
}`

test.each([
  [1, 1],
  [2, 1],
  [3, 1],
  [2, 2],
])('blocks of %i × 1 in groups of %i', async (high, group) => {
  const kernel = (await load(program(high, group))).kernel('added')
  const A = Float32Array.of(1, 0, 2, 0, 0, 3, 0, 0, 0, 0, 0, 0, 4, 5, 6)
  for (const inPlace of [true, false]) {
    const compiled = await kernel.live('A', 'g', { inPlace }).build(await devices.cpu())
    const { C } = await compiled({ A: dense([5, 3], A) })
    expect([...C!.values!]).toEqual([...A].map((x) => (x === 0 ? 0 : x + 1)))
  }
})
