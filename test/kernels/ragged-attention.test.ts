/** Attention over packed sequences: wherever they end, and however many there are. */

import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { dense, load } from '../../src/node.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { isTurnOf, sample } from '../support/cases.ts'
import { interpreted } from '../support/interpreted.ts'
import { halves, type KernelCase, kernelSuite, normals } from '../support/kernels.ts'
import { apart, attend } from './attention.ts'

interface Of {
  readonly blocks: number
  readonly b: number
  readonly heads: number
  readonly d: number
  readonly e: number
  readonly ends: readonly number[]
}

/** Tokens of blocks in which no sequence is hold NaN. */
function inputs({ blocks, b, heads, d, e, ends }: Of, causal: number) {
  const tokens = blocks * b
  const used = b * Math.ceil(Math.max(0, ...ends) / b)
  const values = (width: number, seed: number) => {
    const x = normals(tokens * heads * width, seed)
    return dense([blocks, b, heads, width], x.fill(Number.NaN, used * heads * width))
  }
  return {
    tensors: {
      E: dense([ends.length], Int32Array.from(ends)),
      Q: values(d, 1),
      K: values(d, 2),
      V: values(e, 3),
    },
    params: { scale: 0.3, causal },
  }
}

const ENDS: Readonly<Record<string, readonly number[]>> = {
  'no sequence': [],
  'empty sequences alone': [0, 0],
  'empty ones among others, and some of one token': [0, 7, 7, 8, 9, 31, 31, 60],
  'one of all tokens': [64],
  'whole blocks': [64],
  'one token alone': [1],
}

const half = (shape: readonly number[], seed: number) =>
  halves(
    shape,
    normals(
      shape.reduce((a, b) => a * b, 1),
      seed,
    ),
  )

const inHalf = ({ blocks, b, heads, d, e, ends }: Of, causal: number) => ({
  tensors: {
    E: dense([ends.length], Int32Array.from(ends)),
    Q: half([blocks, b, heads, d], 1),
    K: half([blocks, b, heads, d], 2),
    V: half([blocks, b, heads, e], 3),
  },
  params: { scale: 0.3, causal },
})

const cases: readonly KernelCase[] = [
  { name: 'no tokens', inputs: inputs({ blocks: 0, b: 64, heads: 1, d: 3, e: 64, ends: [0] }, 0) },
  ...Object.entries(ENDS).flatMap(([name, ends]) =>
    [0, 1].map(
      (causal): KernelCase => ({
        name: `${name}, causal ${causal}`,
        inputs: inputs({ blocks: 2, b: 64, heads: causal + 1, d: 17 - causal, e: 64, ends }, causal),
      }),
    ),
  ),
]

const halfCases = Object.entries(ENDS).map(
  ([name, ends], k): KernelCase => ({
    name: `f16, ${name}`,
    inputs: inHalf({ blocks: 1, b: 64, heads: 2, d: 9, e: 64, ends }, k % 2),
  }),
)

kernelSuite({
  file: 'kernels/ragged-attention.spt',
  kernels: ['ragged_attention', 'ragged_attention<f16>'],
  // On webgpu below, in smaller tiles.
  ranElsewhere: ['gpu', 'auto', 'large'],
  alsoWith: [
    ['ragged_attention', 'gpu', 32, 64, 4, 4],
    ['ragged_attention', 'gpu', 32, 128],
    ['ragged_attention<f16>', 'mma', 64, 128, 128],
  ],
  cases: (kernel, schedule) =>
    (({ ragged_attention: cases, 'ragged_attention<f16>': halfCases })[kernel] ?? []).filter(
      (c) => schedule !== 'builder' || c.name.includes('one token'),
    ),
})

test.runIf(isTurnOf(1, 2)).each(sample([0, 1], 1))(
  'ragged_attention<f16>.mma, causal %d, interpreted after each step',
  async (causal) => {
    const of = { blocks: 3, key_blocks: 3, b: 64, heads: 1, d: 64, e: 64 }
    const kernel = (await load('kernels/ragged-attention.spt')).kernel('ragged_attention<f16>')
    const { tensors, params } = inHalf({ ...of, ends: [20, 20, 75, 100] }, causal)
    const given = { tensors, params: { ...params, ...of, sequences: 4 } }
    const run = (schedule: string, ...args: number[]) =>
      Array.from(interpreted(kernel.schedule(schedule, ...args), given).get('O')!, Number)
    const [got, plain] = [run('mma'), run('cpu')]
    expect(got).toEqual(plain)
    expect(got.findLastIndex((x) => x !== 0)).toBe(100 * of.e - 1)
  },
)

test('schedules of the base, in another file, use the builder of this kernel', async () => {
  const kernel = (await load('kernels/ragged-attention.spt')).kernel('ragged_attention<f16>')
  const text = kernel
    .schedule('gpu')
    .emit('cuda')
    .map((t) => t.text)
    .join('\n')
  // The sequence of each token, the mask of blocks, its list in two launches, and the product.
  expect(text.match(/__global__/g)).toHaveLength(5)
})

test('a warp holds only its own rows in registers', async () => {
  const kernel = (await load('kernels/ragged-attention.spt')).kernel('ragged_attention<f16>')
  const text = kernel
    .schedule('mma')
    .emit('cuda')
    .map((t) => t.text)
    .join('\n')
  expect(text).toContain('mma.sync')
  expect(text).not.toMatch(/float \w+\[\d+\];/)
})

test('ragged_attention.large with all rows of a half tile in one thread', async () => {
  const kernel = (await load('kernels/ragged-attention.spt')).kernel('ragged_attention')
  expect(kernel.schedule('large', 8, 8, 8, 4).emit('wgsl').length).toBeGreaterThan(1)
})

const SMALL = [
  ['ragged_attention<f16>', 'gpu', [8, 8, 2, 4, 4], 8, 6],
  ['ragged_attention', 'large', [16, 4, 16, 4], 16, 4],
  // Each thread has one row: its loop over those has one iteration.
  ['ragged_attention', 'gpu', [8, 8, 1, 4, 4], 8, 6],
] as const
test.each(sample(SMALL, 4))('%s.%s on webgpu, in small tiles', async (name, schedule, args, b, d) => {
  const device = await createNodeWebGpu()
  const kernel = (await load('kernels/ragged-attention.spt')).kernel(name)
  const compiled = await kernel.schedule(schedule, ...args).build(device)
  const draw = name.endsWith('<f16>') ? inHalf : inputs
  for (const ends of [[3, 3, 17], [32], [], [8, 16]]) {
    const given = draw({ blocks: 32 / b, b, heads: 2, d, e: b, ends }, ends.length % 2)
    const prepared = await compiled.bind(...flatInputs(given))
    await prepared.run()
    expect(await prepared.verify()).toMatchObject({ problems: [], undecided: 0 })
    prepared.free()
  }
  compiled.release()
  await device.dispose()
})

test.each([
  ['cpu', 'cpu', [4, 8, 2]],
  ['cpu', 'auto', []],
  ['webgpu', 'gpu', [4, 8, 2, 2, 2]],
] as const)(
  'on %s by %s(%j), with other sequences in each run of one prepared kernel, isolated from each other',
  async (on, name, args) => {
    const of = { blocks: 5, b: 4, heads: 2, d: 3, e: 8 }
    const device = on === 'cpu' ? createCpuDevice() : await createNodeWebGpu()
    const kernel = (await load('kernels/ragged-attention.spt')).kernel('ragged_attention')
    const compiled = await kernel.schedule(name, ...args).build(device)
    const prepared = await compiled.bind(...flatInputs(inputs({ ...of, ends: [20, 20, 20] }, 1)))
    for (const ends of [
      [3, 3, 17],
      [0, 0, 0],
      [20, 20, 20],
      [1, 2, 3],
      [4, 8, 20],
    ]) {
      const { E, V } = inputs({ ...of, ends }, 1).tensors
      // The first sequence holds more than the others: none but its own rows do then.
      await prepared.set('E', E.values as Int32Array)
      await prepared.set('V', (V.values as Float32Array).fill(32, 0, ends[0]! * of.heads * of.e))
      await prepared.run()
      const verified = await prepared.verify()
      expect(verified.problems).toEqual([])
      const O = (await prepared.get('O')).values as Float32Array
      const own = (t: number): number => ends.filter((end) => end <= t).length
      const counts = (_: number, i: number, j: number): boolean => own(i) === own(j) && own(i) < 3 && j <= i
      const q = inputs({ ...of, ends: [20] }, 1).tensors.Q.values as Float32Array
      const k = inputs({ ...of, ends: [20] }, 1).tensors.K.values as Float32Array
      const expected = attend({ ...of, tokens: 20 }, { Q: q, K: k, V: V.values as Float32Array }, 0.3, counts)
      expect(apart(O, expected)).toBeLessThan(1e-5)
      const rows = Array.from({ length: 20 }, (_, t) => O.slice(t * 16, (t + 1) * 16))
      expect(rows.map((r) => r.some((x) => x > 31))).toEqual(rows.map((_, t) => t < ends[0]!))
      expect(rows.map((r) => r.every((x) => x === 0))).toEqual(rows.map((_, t) => t >= ends[2]!))
    }
    prepared.free()
    compiled.release()
    await device.dispose()
  },
)
