/** Attention with masks and scores of users, against a dense reference in plain loops. */

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { fromF16 } from '../../src/ir/values/half.ts'
import { type DenseTensor, type Device, dense, devices, load } from '../../src/node.ts'
import { runs, sample } from '../support/cases.ts'
import { interpreted } from '../support/interpreted.ts'
import { halves, normals } from '../support/kernels.ts'
import { apart, attend } from './attention.ts'

const IMPORT = 'import "sparsetile/kernels/flexible-attention.spt"'

interface Shape {
  readonly blocks: number
  readonly b: number
  readonly heads: number
}
type Pair = (h: number, q: number, k: number) => number

/** A mask as a user writes it, its data, and the same mask and bias in plain code. */
interface Mask {
  readonly text: string
  readonly params?: Readonly<Record<string, number>>
  readonly tensors?: (of: Shape, seed: number) => Readonly<Record<string, ReturnType<typeof dense>>>
  /** `bias` is added to s, or is the score if it `ignores` s. */
  readonly pairs: (
    of: Shape,
    seed: number,
  ) => { readonly sees: Pair; readonly bias?: Pair; readonly ignores?: true }
}

const documentOf = ({ blocks, b }: Shape, seed: number): Int32Array =>
  Int32Array.from({ length: blocks * b }, (_, t) => Math.floor((t + (seed % 3)) / 7))
const keptOf = ({ blocks, b, heads }: Shape, seed: number): Int32Array =>
  Int32Array.from({ length: heads * blocks * b }, (_, t) => ((t * 7 + seed) % 5 === 0 ? 1 : 0))
const slopes = ({ heads }: Shape): Float32Array =>
  Float32Array.from({ length: heads }, (_, h) => 2 ** -(h + 1))

const causal: Pair = (_, q, k) => Number(k <= q)
const MASKS: Readonly<Record<string, Mask>> = {
  causal: {
    text: `kernel causal<T: f32 or f16>() extends tiled_attention<T> {
      define mask(h, q, k) = k <= q
      define block(i, j) = j <= i
      define full(i, j) = j < i
    }`,
    pairs: () => ({ sees: causal }),
  },
  window: {
    text: `kernel window<T: f32 or f16>(reach: size) extends tiled_attention<T> {
      define mask(h, q, k) = k <= q and q - k < reach
      define block(i, j) = j <= i and (i - j - 1) * b < reach
    }`,
    params: { reach: 5 },
    pairs: () => ({ sees: (_, q, k) => Number(k <= q && q - k < 5) }),
  },
  documents: {
    text: `kernel documents<T: f32 or f16>() extends mask_attention<T> {
      buffer D: i32[queries] in
      define mask(h, q, k) = k <= q and D[q] == D[k]
    }`,
    tensors: (of, seed) => ({ D: dense([of.blocks * of.b], documentOf(of, seed)) }),
    pairs(of, seed) {
      const D = documentOf(of, seed)
      return { sees: (_, q, k) => Number(k <= q && D[q] === D[k]) }
    },
  },
  alibi: {
    text: `kernel alibi<T: f32 or f16>() extends tiled_attention<T> {
      buffer slope: f32[h] in
      define mask(h, q, k) = k <= q
      define block(i, j) = j <= i
      define score(s, h, q, k) = s + slope[h] * f32(k - q)
    }`,
    tensors: (of) => ({ slope: dense([of.heads], slopes(of)) }),
    pairs: (of) => ({ sees: causal, bias: (h, q, k) => slopes(of)[h]! * (k - q) }),
  },
  kept: {
    text: `kernel kept<T: f32 or f16>() extends mask_attention<T> {
      buffer keep: i32[h, keys] in
      define mask(h, q, k) = keep[h, k] != 0
    }`,
    tensors: (of, seed) => ({ keep: dense([of.heads, of.blocks * of.b], keptOf(of, seed)) }),
    pairs(of, seed) {
      const keep = keptOf(of, seed)
      return { sees: (h, _, k) => keep[h * of.blocks * of.b + k]! }
    },
  },
}

const all: Pair = () => 1
/** Masks and scores that ignore s, so that nothing reads the products of queries and keys. */
const WITHOUT_PRODUCTS: Readonly<Record<string, Mask>> = {
  near: {
    text: `kernel near<T: f32 or f16>() extends tiled_attention<T> {
      define score(s, h, q, k) = -abs(f32(q - k))
    }`,
    pairs: () => ({ sees: all, bias: (_, q, k) => -Math.abs(q - k), ignores: true }),
  },
  mean: {
    text: `kernel mean<T: f32 or f16>() extends mask_attention<T> {
      define mask(h, q, k) = k <= q
      define score(s, h, q, k) = 0.0
    }`,
    pairs: () => ({ sees: causal, ignores: true }),
  },
  nothing: {
    text: `kernel nothing<T: f32 or f16>() extends tiled_attention<T> { define mask(h, q, k) = false }`,
    pairs: () => ({ sees: () => 0 }),
  },
}
const ALL: Readonly<Record<string, Mask>> = { ...MASKS, ...WITHOUT_PRODUCTS }

const kernelOf = async (name: string, T: string) =>
  (await load(`${IMPORT}\n${ALL[name]!.text}`)).kernel(name, { T })

function inputs(
  name: string,
  of: Shape & { readonly d: number; readonly e: number },
  T: string,
  seed: number,
) {
  const values = (width: number, k: number) => {
    const shape = [of.blocks, of.b, of.heads, width]
    const x = normals(of.blocks * of.b * of.heads * width, seed + k)
    return T === 'f16' ? halves(shape, x) : dense(shape, x)
  }
  const mask = ALL[name]!
  const tensors = { Q: values(of.d, 1), K: values(of.d, 2), V: values(of.e, 3), ...mask.tensors?.(of, seed) }
  return { tensors, params: { scale: 0.3, ...mask.params } }
}

function expected(
  name: string,
  of: Shape & { readonly d: number; readonly e: number },
  { tensors: { Q, K, V } }: ReturnType<typeof inputs>,
  seed: number,
): Float32Array {
  const { sees, bias, ignores } = ALL[name]!.pairs(of, seed)
  const arrays = { Q: floats(Q), K: floats(K), V: floats(V) }
  const counts = (h: number, q: number, k: number): boolean => sees(h, q, k) !== 0
  return attend({ ...of, tokens: of.blocks * of.b }, arrays, ignores ? 0 : 0.3, counts, bias)
}

const floats = ({ values }: DenseTensor): Float32Array =>
  Float32Array.from(values as ArrayLike<number>, (x) => (values instanceof Uint16Array ? fromF16(x) : x))

const ON = {
  cpu: { schedule: 'cpu', b: 4, e: 8, args: [4, 8, 2] },
  webgpu: { schedule: 'gpu', b: 8, e: 8, args: [8, 8, 2, 4, 4] },
} as const

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  beforeAll(async () => {
    device = await devices[kind]()
  })
  afterAll(() => device.dispose())

  test.each([
    ...sample(Object.keys(MASKS), kind === 'cpu' ? 5 : 3),
    ...sample(Object.keys(WITHOUT_PRODUCTS), 3),
  ])('%s agrees with plain loops', async (name) => {
    const { schedule, args, b, e } = ON[kind]
    for (const T of sample(['f32', 'f16'], kind === 'cpu' ? 2 : 1)) {
      const compiled = await (await kernelOf(name, T)).schedule(schedule, ...args).build(device)
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 0, max: 4 }),
          fc.integer({ min: 1, max: 3 }),
          fc.nat(99),
          async (blocks, heads, seed) => {
            const of = { blocks, b, heads, d: 5, e }
            const given = inputs(name, of, T, seed)
            const O = floats((await compiled(...flatInputs(given))).O as DenseTensor)
            expect(apart(O, expected(name, of, given, seed))).toBeLessThan(T === 'f16' ? 4e-3 : 1e-5)
          },
        ),
        { numRuns: runs(4) },
      )
      compiled.release()
    }
  })
})

test.each([...sample(Object.keys(MASKS), 1), ...sample(Object.keys(WITHOUT_PRODUCTS), 1)])(
  '%s on tensor cores equals the CPU, interpreted',
  async (name) => {
    const of = { blocks: 2, b: 16, heads: 1, d: 16, e: 16 }
    const kernel = await kernelOf(name, 'f16')
    const { tensors, params } = inputs(name, of, 'f16', 1)
    const given = { tensors, params: { ...params, ...of, key_blocks: of.blocks } }
    const run = (schedule: string): number[] =>
      Array.from(
        interpreted(kernel.schedule(schedule, 16, 16, ...(schedule === 'mma' ? [16] : [])), given).get('O')!,
        Number,
      )
    expect(run('mma')).toEqual(run('cpu'))
  },
)

test.each(['cpu', 'mma'])('products that nothing reads take no memory: %s', async (schedule) => {
  const { buffers } = (await kernelOf('near', 'f16')).schedule(schedule).compilation.plan
  expect(buffers.map((b) => b.name)).not.toContain('S')
})

test('a mask takes few lines', () => {
  for (const { text } of Object.values(MASKS))
    expect(`${IMPORT}\n${text}`.split('\n').length).toBeLessThanOrEqual(40)
})
