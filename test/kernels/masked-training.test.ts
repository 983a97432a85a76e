/** Steps of training under a mask that moves: other masks in every run, all of it, none of it, and NaN in weights that it leaves out. */
import { expect, test } from 'vitest'
import { dense, devices, load } from '../../src/node.ts'
import { sample } from '../support/cases.ts'
import { interpreted } from '../support/interpreted.ts'
import { halves, integers, type KernelCase, kernelSuite } from '../support/kernels.ts'

const SIZES = [
  [0, 3, 5],
  [5, 0, 3],
  [3, 4, 0],
  [1, 1, 1],
  [17, 65, 31],
  [32, 64, 32],
  [35, 33, 66],
] as const

type Held = (o: number, p: number) => boolean
const MASKS: Readonly<Record<string, Held>> = {
  none: () => false,
  all: () => true,
  scattered: (o, p) => (o * 31 + p * 17) % 7 === 0,
  blocks: (o, p) => (Math.floor(o / 8) * 3 + Math.floor(p / 16)) % 4 === 0,
  'one row': (o) => o === 2,
}

const maskOf = (outputs: number, inputs: number, held: Held): Float32Array =>
  Float32Array.from({ length: outputs * inputs }, (_, e) =>
    held(Math.floor(e / inputs), e % inputs) ? 1 + (e % 2) : -0,
  )

type Sizes = readonly [tokens: number, inputs: number, outputs: number]

/** What a step takes, of half floats but for the weights or all of f32. */
function operands([tokens, inputs, outputs]: Sizes, held: Held, isHalf: boolean) {
  const of = (shape: readonly number[], values: Float32Array) =>
    isHalf ? halves(shape, values) : dense(shape, values)
  return {
    X: of([tokens, inputs], integers(tokens * inputs, 2)),
    T: of([tokens, outputs], integers(tokens * outputs, 3)),
    W: dense([outputs, inputs], integers(outputs * inputs, 4)),
    M: of([outputs, inputs], maskOf(outputs, inputs, held)),
  }
}

/** Of half floats every second size. */
const casesOf = (isHalf: boolean) => (): readonly KernelCase[] =>
  SIZES.filter((_, k) => !isHalf || k % 2 === 0).flatMap((sizes) =>
    Object.entries(MASKS).map(
      ([name, held]): KernelCase => ({
        name: `${sizes.join(' × ')}, ${name}`,
        inputs: { tensors: operands(sizes, held, isHalf), params: { rate: 0.5 } },
        exact: true,
      }),
    ),
  )

kernelSuite({
  file: 'kernels/masked-training.spt',
  alsoWith: [
    ['masked_training', 'gpu', 32, 64, 32, 16, 4, 4],
    ['masked_training', 'dense_gpu', 16, 8, 2, 4],
  ],
  cases: casesOf(false),
})

kernelSuite({
  file: 'kernels/masked-training-f16.spt',
  alsoWith: [
    ['masked_training_f16', 'gpu', 32, 64, 32, 16, 4, 4],
    ['masked_training_f16', 'dense_gpu', 16, 8, 2, 4],
    ['masked_training_f16', 'wgmma', 128, 3, 3],
    ['masked_training_f16', 'dense_wgmma', 128, 128, 4],
  ],
  cases: casesOf(true),
})

/** Schedules for instructions that no device here has, another in every run. */
test.each(
  sample(
    [
      ['wgmma', [64, 2, 2]],
      ['wgmma', [128, 3, 4]],
      ['dense_wgmma', [64, 64, 2]],
    ] as const,
    1,
  ),
)('masked_training_f16.%s(%j), interpreted after each step', async (schedule, args) => {
  const sizes = [128, 128, 64] as const
  const [tokens, inputs, outputs] = sizes
  // A block that holds single elements, and one that holds none; what is left out is no number.
  const held: Held = (o, p) => p < 64 && (o * 31 + p * 17) % 7 === 0
  const given = operands(sizes, held, true)
  const W = integers(outputs * inputs, 4).map((w, e) =>
    held(Math.floor(e / inputs), e % inputs) ? w : Number.NaN,
  )
  const kernel = (await load('kernels/masked-training-f16.spt')).kernel('masked_training_f16')
  const run = (name: string, ...own: readonly number[]) => {
    const memory = interpreted(kernel.schedule(name, ...own), {
      tensors: { ...given, W: dense([outputs, inputs], W.slice()) },
      params: { tokens, inputs, outputs, rate: 0.5 },
    })
    return ['V', 'Y', 'D', 'W'].map((t) => Array.from(memory.get(t)!, (x) => Number(x) + 0))
  }
  const got = run(schedule, ...args)
  expect(got).toEqual(run('dense_cpu'))
  expect(got.every((values) => values.some((x) => x !== 0 && !Number.isNaN(x)))).toBe(true)
})

/** A step by hand: weights in place. */
function step(
  [tokens, inputs, outputs]: readonly [number, number, number],
  { X, T, M, W, rate }: { X: Float32Array; T: Float32Array; M: Float32Array; W: Float64Array; rate: number },
): { readonly Y: number[]; readonly D: number[] } {
  const V = W.map((w, e) => (M[e] === 0 ? 0 : w))
  const Y = Array.from({ length: tokens * outputs }, () => 0)
  const D = Array.from({ length: tokens * inputs }, () => 0)
  const G = new Float64Array(outputs * inputs)
  for (let t = 0; t < tokens; t++)
    for (let o = 0; o < outputs; o++) {
      for (let p = 0; p < inputs; p++) Y[t * outputs + o]! += X[t * inputs + p]! * V[o * inputs + p]!
      const e = Y[t * outputs + o]! - T[t * outputs + o]!
      for (let p = 0; p < inputs; p++) {
        D[t * inputs + p]! += e * V[o * inputs + p]!
        G[o * inputs + p]! += e * X[t * inputs + p]!
      }
    }
  for (const [e, m] of M.entries()) if (m !== 0) W[e]! += -rate * G[e]!
  return { Y, D }
}

const TRAINED = [
  ['cpu', 'cpu', []],
  ['cpu', 'auto', []],
  ['webgpu', 'gpu', [8, 16, 16, 8, 2, 4]],
] as const
test.each(sample(TRAINED, 3))(
  'on %s, %s%j: masked weights persist from run to run',
  async (on, schedule, args) => {
    const device = await devices[on]()
    try {
      const sizes = [9, 19, 20] as const
      const [tokens, inputs, outputs] = sizes
      const X = integers(tokens * inputs, 1)
      const T = integers(tokens * outputs, 2)
      // Sums of what is so far from each other are exact in f32 for as many steps.
      const rate = 2 ** -8
      const masks = [MASKS.scattered!, MASKS.none!, MASKS.blocks!, MASKS.all!, MASKS['one row']!]
      // What the mask never has is no number.
      const dead = (e: number): boolean =>
        masks.every((held, k) => k === 3 || !held(Math.floor(e / inputs), e % inputs))
      const given = integers(outputs * inputs, 3).map((w, e) => (dead(e) ? Number.NaN : w))
      const W = Float64Array.from(given)
      const kernel = (await load('kernels/masked-training.spt'))
        .kernel('masked_training')
        .schedule(schedule, ...args)
      const compiled = await kernel.build(device)
      const prepared = await compiled.bind({
        X: dense([tokens, inputs], X),
        T: dense([tokens, outputs], T),
        W: dense([outputs, inputs], given),
        M: dense([outputs, inputs], new Float32Array(outputs * inputs)),
        rate,
      })
      for (const [k, held] of masks.entries()) {
        // All of what is a number.
        const M = maskOf(outputs, inputs, k === 3 ? (o, p) => !dead(o * inputs + p) : held)
        await prepared.set('M', M)
        await prepared.run()
        const expected = step(sizes, { X, T, M, W, rate })
        const read = async (name: string): Promise<number[]> =>
          Array.from((await prepared.get(name)).values as Float32Array)
        const close = (got: number[], by: readonly number[]): void => {
          for (const [e, x] of by.entries())
            if (Number.isNaN(x)) expect(got[e]).toBeNaN()
            else
              expect(Math.abs(got[e]! - x), `run ${k}, element ${e}`).toBeLessThanOrEqual(
                1e-4 * (1 + Math.abs(x)),
              )
        }
        close(await read('Y'), expected.Y)
        close(await read('D'), expected.D)
        close(await read('W'), [...W])
      }
      prepared.free()
    } finally {
      await device.dispose()
    }
  },
)
