/** Which threads of a WebGPU block exchange registers. */
import { expect, test } from 'vitest'
import { devices, load } from '../../src/node.ts'
import { lanesFromExchanges, lanesOf } from '../../src/runtime/webgpu/limits.ts'

/** What threads answer: 5 shapes of 64 threads, 5 steps each, of subgroups that number their threads by `place`. */
const answers = (size: number, place: (thread: number) => number = (t) => t): Uint32Array => {
  const at = Array.from({ length: 64 }, (_, t) => place(t))
  const out: number[] = []
  for (let shape = 0; shape < 5; shape++)
    for (let t = 0; t < 64; t++)
      for (let step = 0; step < 5; step++) {
        const [group, lane] = [Math.floor(at[t]! / size), at[t]! % size]
        const other = lane ^ (1 << step)
        out.push(other < size ? at.indexOf(group * size + other) : 999)
      }
  return Uint32Array.from(out)
}

test('the lane width is the guaranteed number of neighbours', () => {
  for (const size of [4, 8, 16, 32, 64])
    expect(lanesFromExchanges(answers(size), size)).toBe(Math.min(size, 32))
  // Another kernel may run in smaller subgroups.
  expect(lanesFromExchanges(answers(32), 8)).toBe(8)
  // Quads in rows of two: neighbours by twos only.
  const quads = (t: number): number => (t & ~14) | ((t & 2) << 2) | ((t & 12) >> 1)
  expect(lanesFromExchanges(answers(32, quads), 32)).toBe(2)
  expect(lanesFromExchanges(answers(32, (t) => t ^ 1).fill(0), 32)).toBe(1)
})

test('without subgroups of a known size, the lane width is 1', async () => {
  for (const [features, smallest] of [
    [[], 8],
    [['subgroups'], undefined],
  ] as const)
    expect(await lanesOf({ features: new Set(features) } as unknown as GPUDevice, smallest)).toBe(1)
})

test('the device reports the width, and its kernels exchange registers', async () => {
  const device = await devices.webgpu()
  const { lanes } = device.limits
  expect(Number.isInteger(Math.log2(lanes!))).toBe(true)
  const program = await load(`
kernel rows(m: size, d: size) {
  axis i = dense_fixed(m)
  axis k = dense_fixed(d)
  buffer X: f32[i, k] in
  buffer y: f32[i] out
  iterate sum [i, k] as SR { y[i] += X[i, k] }
}
schedule rows.lanes(rows, lanes) {
  split i by rows -> (o, t)
  split k by lanes -> (ko, kl)
  bind o to block.x, t to thread.y, kl to thread.x
}`)
  for (const [rows, width] of [
    [4, 2],
    [3, 4],
    [2, 16],
    [1, 64],
  ] as const) {
    const compiled = await program.kernel().schedule('lanes', rows, width).build(device)
    const text = compiled.program.plan.texts.map((t) => t.text).join('\n')
    expect(text.includes('subgroupShuffleXor')).toBe(lanes! > 1)
    const prepared = await compiled.bind({ m: 13, d: 37 }, { seed: 3 })
    expect((await prepared.verify()).problems).toEqual([])
    prepared.free()
    compiled.release()
  }
  await device.dispose()
})
