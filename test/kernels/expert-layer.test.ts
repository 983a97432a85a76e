/** A mixture of experts from the router to the result: whichever expert tokens go to, and however many they have. */

import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { toF16 } from '../../src/ir/values/half.ts'
import { dense, devices, load } from '../../src/node.ts'
import { sample } from '../support/cases.ts'
import { interpreted } from '../support/interpreted.ts'
import { integers, type KernelCase, kernelSuite } from '../support/kernels.ts'

const half = (shape: readonly number[], most: number) =>
  dense(
    shape,
    Uint16Array.from(
      integers(
        shape.reduce((a, b) => a * b, 1),
        most,
      ),
      toF16,
    ),
    'f16',
  )

/** Logits, of which the greatest two are equal, so that gates are 1 or a half. */
const ROUTES: Readonly<Record<string, (t: number, e: number, experts: number) => number>> = {
  spread: (t, e, experts) => ((t * 7 + e) % experts < 2 ? 5 : e % 3),
  'all to the first two': (_, e) => (e < 2 ? 9 : 0),
  'all to the last two': (_, e, experts) => (e >= experts - 2 ? 9 : 0),
  equal: () => 1,
}

const inputs = (
  experts: number,
  tokens: number,
  [k, h, n]: readonly number[],
  top: number,
  route: string,
) => {
  const G = Float32Array.from({ length: tokens * experts }, (_, x) =>
    ROUTES[route]!(Math.floor(x / experts), x % experts, experts),
  )
  return {
    tensors: {
      G: dense([tokens, experts], G),
      X: half([tokens, k!], 2),
      U: half([experts, k!, h!], 2),
      D: half([experts, h!, n!], 2),
    },
    params: { top },
  }
}

const SIZES = [
  [3, 0, [4, 4, 4]],
  [1, 5, [3, 2, 5]],
  [2, 33, [17, 9, 33]],
  [5, 70, [8, 16, 8]],
] as const

kernelSuite({
  file: 'kernels/expert-layer.spt',
  alsoWith: [
    ['expert_layer_f16', 'cpu', 5],
    ['expert_layer_f16', 'gpu', 8, 8, 4, 3],
    ['expert_layer_f16', 'wgmma', 64, 64, 2, 5],
    ['expert_layer_ordered_f16', 'cpu', 5],
    ['expert_layer_ordered_f16', 'gpu', 8, 8, 4, 3],
    ['expert_layer_ordered_f16', 'wgmma', 64, 64, 2, 5],
  ],
  cases: () =>
    SIZES.flatMap(([experts, tokens, sizes]) =>
      Object.keys(ROUTES).flatMap((route) =>
        [1, 2].map(
          (top): KernelCase => ({
            name: `${experts} experts, ${tokens} tokens, ${sizes.join(' × ')}, ${route}, top ${top}`,
            inputs: inputs(experts, tokens, sizes, top, route),
            exact: true,
          }),
        ),
      ),
    ),
})

test.each(
  sample(
    [
      ['expert_layer_f16', 1],
      ['expert_layer_f16', 2],
      ['expert_layer_ordered_f16', 2],
    ] as const,
    2,
  ),
)('%s on tensor cores, top %d, interpreted after each step', async (kernel, top) => {
  const [experts, tokens] = [3, 70]
  const program = await load('kernels/expert-layer.spt')
  // `wgmma_unaligned` has other arguments before the widths of its copies.
  const widths = kernel === 'expert_layer_f16' ? [64, 2, 1, 1] : [2, 1, 1]
  const ways: [string, [number, number, number], ...number[]][] = [
    ['wgmma', [64, 64, 64]],
    ['wgmma_unaligned', [66, 37, 71], 2, ...widths],
  ]
  for (const [schedule, sizes, ...more] of sample(ways, 3)) {
    const [k, h, n] = sizes
    const { tensors } = inputs(experts, tokens, sizes, top, 'spread')
    const given = { tensors, params: { experts, tokens, k, h, n, top } }
    const run = (name: string, ...args: number[]) =>
      Array.from(interpreted(program.kernel(kernel).schedule(name, ...args), given).get('Y')!, Number)
    const got = run(schedule, 64, 64, 2, 2, ...more)
    expect(got).toEqual(run('cpu'))
    expect(got.some((x) => x !== 0)).toBe(true)
  }
})

test('ordered sums are bitwise reproducible for any grid and use no atomics', async () => {
  const program = await load('kernels/expert-layer.spt')
  const kernel = program.kernel('expert_layer_ordered_f16')
  for (const schedule of ['gpu', 'wgmma'])
    for (const { text } of kernel.schedule(schedule).emit('cuda')) expect(text).not.toContain('atomicAdd(')
  const atomic = program.kernel('expert_layer_f16').schedule('gpu').emit('cuda')
  expect(atomic.some(({ text }) => text.includes('atomicAdd('))).toBe(true)
  const [experts, tokens, k, h, n] = [4, 37, 12, 9, 10]
  // Values whose sums depend on the order.
  const rough = (shape: readonly number[]) =>
    dense(
      shape,
      Uint16Array.from({ length: shape.reduce((a, b) => a * b) }, (_, x) => toF16(Math.sin(x * 12.9898) * 3)),
      'f16',
    )
  const G = Float32Array.from({ length: tokens * experts }, (_, x) => Math.sin(x * 78.233))
  const given = {
    tensors: {
      G: dense([tokens, experts], G),
      X: rough([tokens, k]),
      U: rough([experts, k, h]),
      D: rough([experts, h, n]),
    },
    params: { top: 2 },
  }
  const device = await devices.webgpu()
  const bits: string[] = []
  const launches = [
    [32, 32, 16],
    [8, 8, 3],
    [4, 16, 1],
  ] as const
  for (const [s, cols, grid] of sample(launches, 2)) {
    const compiled = await kernel.schedule('gpu', s, cols, 4, grid).build(device)
    const prepared = await compiled.bind(...flatInputs(given))
    for (let again = 0; again < 2; again++) {
      await prepared.run()
      const Y = (await prepared.get('Y')).values as Float32Array
      expect(Y.some((x) => x !== 0)).toBe(true)
      bits.push(String(new Int32Array(Y.buffer, Y.byteOffset, Y.length)))
    }
    prepared.free()
  }
  expect(new Set(bits).size).toBe(1)
  await device.dispose()
})

test.each([
  ['expert_layer_f16', 'gpu', 1],
  ['expert_layer_ordered_f16', 'cpu', 1],
] as const)('a NaN logit affects only its token: %s.%s, top %d', async (name, schedule, top) => {
  const [experts, tokens, sizes] = [4, 5, [2, 2, 3]] as const
  const program = await load('kernels/expert-layer.spt')
  const given = inputs(experts, tokens, sizes, top, 'spread')
  const run = (G: Float32Array) => {
    const tensors = { ...given.tensors, G: dense([tokens, experts], G) }
    const params = { experts, tokens, k: sizes[0], h: sizes[1], n: sizes[2], top }
    const kernel = program.kernel(name).schedule(schedule)
    return Array.from(interpreted(kernel, { tensors, params }).get('Y')!, Number)
  }
  const G = given.tensors.G.values as Float32Array
  const usual = run(G)
  // First, in the middle, last, and all.
  const lost = Float32Array.from(G, (x, at) => ([0, 6, 11].includes(at) || at >= 16 ? Number.NaN : x))
  const isLost = [true, true, true, false, true]
  expect(run(lost)).toEqual(usual.map((y, at) => (isLost[Math.floor(at / sizes[2])] ? Number.NaN : y)))
})
