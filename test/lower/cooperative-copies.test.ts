/** Tiles that threads fill together, where some of the threads have no element of their own. */
import { expect, test } from 'vitest'
import { devices, load } from '../../src/node.ts'

const TEXT = `
kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer A: f32[i, p] in
  buffer B: f32[p, j] in
  buffer C: f32[i, j] out
  iterate sum [i, j, p] as SSR { C[i, j] += A[i, p] * B[p, j] }
}
schedule product.shared(rows = 8, cols = 16, depth = 4) {
  split i by rows -> (io, ii)
  split j by cols -> (jo, ji)
  split p by depth -> (po, pi)
  reorder (io, jo, ii, ji, po, pi)
  bind io to block.x, jo to block.y, ii to thread.y, ji to thread.x
  cache_write C at ji in register
  cache_read A at po in shared
  cache_read B at po in shared
}`

test('every element is filled, with idle threads too', async () => {
  const kernel = (await load(TEXT)).kernel().schedule('shared')
  for (const device of [await devices.cpu(), await devices.webgpu()]) {
    const compiled = await kernel.build(device)
    for (const [m, n, k] of [
      [1, 1, 1],
      [8, 16, 4],
      [9, 3, 7],
      [3, 17, 9],
      [13, 19, 5],
      [0, 4, 4],
      [4, 4, 0],
    ] as const) {
      const prepared = await compiled.bind({ m, n, k }, { seed: m + n + k })
      expect((await prepared.verify()).problems, `${device.kind} ${m} ${n} ${k}`).toEqual([])
      prepared.free()
    }
    await device.dispose()
  }
})

test('a condition on the copying thread does not affect the copied elements', async () => {
  const text = (await load(TEXT)).kernel().schedule('shared').emit('cuda')[0]!.text
  const copy = text.slice(text.indexOf('B_shared['), text.indexOf('__syncthreads'))
  expect(copy).not.toContain('< m')
})

test('stores that are bound to threads keep their distribution over the others', async () => {
  const rows = await load(`
kernel rows(m: size) {
  axis i = dense_fixed(m)
  axis f = dense_fixed(4)
  buffer x: f32[i, f] in
  buffer y: f32[i, f] out
  iterate go [i, f] as SS { y[i, f] = x[i, f] * 2 }
}
schedule rows.tiles {
  split i by 8 -> (io, ii)
  bind io to block.x, ii to thread.y, f to thread.x
  cache_write y at io in shared -> ys
  bind ys.ii to thread.y
}`)
  const text = rows.kernel().schedule('tiles').emit('cuda')[0]!.text
  const back = text.slice(text.indexOf('__syncthreads'))
  expect(back).toContain('y[')
  expect(back).not.toMatch(/for \(|threadIdx.x </)
})
