/** Attention over blocks and columns that are found in each run: none, all, some, and other ones in each run of a prepared kernel. */

import { afterAll, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { type Built, type Device, dense, load } from '../../src/node.ts'
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
}
interface Pattern {
  readonly block: (h: number, q: number, k: number) => boolean
  readonly column: (h: number, c: number) => boolean
}

const maskOf = (count: number, held: (x: number) => boolean): Int32Array =>
  Int32Array.from({ length: count }, (_, x) => (held(x) ? 1 + (x % 3) : 0))

const masks = ({ blocks, b, heads }: Of, { block, column }: Pattern) => ({
  B: maskOf(heads * blocks * blocks, (x) =>
    block(Math.floor(x / blocks ** 2), Math.floor(x / blocks) % blocks, x % blocks),
  ),
  C: maskOf(heads * blocks * b, (x) => column(Math.floor(x / (blocks * b)), x % (blocks * b))),
})

/** Keys and values that no row of a head attends to hold NaN. */
function inputs(of: Of, pattern: Pattern, causal: number, values: typeof halves | typeof dense = dense) {
  const { blocks, b, heads, d, e } = of
  const tokens = blocks * b
  const read = (h: number, c: number): boolean =>
    pattern.column(h, c) ||
    Array.from({ length: blocks }, (_, q) => q).some((q) => pattern.block(h, q, Math.floor(c / b)))
  const keys = (width: number, seed: number): Float32Array =>
    normals(tokens * heads * width, seed).map((x, k) => {
      const row = Math.floor(k / width)
      return read(row % heads, Math.floor(row / heads)) ? x : Number.NaN
    })
  const { B, C } = masks(of, pattern)
  return {
    tensors: {
      B: dense([heads, blocks, blocks], B),
      C: dense([heads, tokens], C),
      Q: values([blocks, b, heads, d], normals(tokens * heads * d, 1)),
      K: values([tokens, heads, d], keys(d, 2)),
      V: values([tokens, heads, e], keys(e, 3)),
    },
    params: { scale: 0.3, causal },
  }
}

const PATTERNS: Readonly<Record<string, Pattern>> = {
  nothing: { block: () => false, column: () => false },
  all: { block: () => true, column: () => true },
  'blocks alone': { block: (h, q, k) => (h + q + 2 * k) % 3 > 0, column: () => false },
  'columns alone': { block: () => false, column: (h, c) => (c * 5 + h) % 4 === 0 },
  'columns in blocks and beside them, no row of one head': {
    block: (h, q, k) => h === 0 && q !== 1 && k === 0,
    column: (h, c) => h === 0 && c % 3 === 1,
  },
  'one column': { block: () => false, column: (h, c) => h === 0 && c === 3 },
}

const casesOf = (of: Of, causals: readonly number[], values?: typeof halves): readonly KernelCase[] =>
  Object.entries(PATTERNS).flatMap(([name, pattern], k) =>
    causals.map((c): KernelCase => {
      const causal = (c + k) % 2
      return { name: `${name}, causal ${causal}`, inputs: inputs(of, pattern, causal, values) }
    }),
  )

kernelSuite({
  file: 'kernels/dynamic-attention.spt',
  // On webgpu below, in smaller tiles.
  ranElsewhere: ['gpu', 'auto'],
  alsoWith: [
    ['dynamic_attention', 'gpu', 64, 64, 4, 8],
    ['dynamic_attention', 'gpu', 32, 128],
    ['dynamic_attention<f16>', 'mma', 64, 128, 128],
  ],
  cases: (kernel) =>
    kernel === 'dynamic_attention'
      ? casesOf({ blocks: 2, b: 32, heads: 2, d: 9, e: 64 }, [0, 1])
      : casesOf({ blocks: 2, b: 64, heads: 2, d: 3, e: 64 }, [0], halves).slice(3),
})

/** Every second seed; `ragged_attention<f16>.mma`, which has the same tiles, for the others. */
test.runIf(isTurnOf(0, 2))(
  'dynamic_attention<f16>.mma, interpreted after each step; a warp holds only its own rows in registers',
  async () => {
    const of = { blocks: 2, b: 64, heads: 2, d: 64, e: 64 }
    const kernel = (await load('kernels/dynamic-attention.spt')).kernel('dynamic_attention<f16>')
    const mma = kernel.schedule('mma')
    const given = inputs(of, PATTERNS['columns in blocks and beside them, no row of one head']!, 1, halves)
    const [got, plain] = [mma, kernel.schedule('cpu')].map((k) =>
      Float32Array.from(interpreted(k, given).get('O')!, Number),
    ) as [Float32Array, Float32Array]
    expect(apart(got, plain)).toBeLessThan(2e-3)
    expect(got.some((x) => x !== 0)).toBe(true)
    const texts = mma.emit('cuda').map((t) => t.text)
    expect(texts.join('\n')).toContain('mma.sync')
    expect(texts.join('\n')).not.toMatch(/float \w+\[\d+\];/)
  },
)

const opened: (Device | Built)[] = []
afterAll(async () => {
  for (const x of opened.reverse()) await ('dispose' in x ? x.dispose() : x.release())
})

test.runIf(isTurnOf(1, 2))('dynamic_attention<f16>.gpu on webgpu, in small tiles', async () => {
  const device = await createNodeWebGpu()
  opened.push(device)
  const kernel = (await load('kernels/dynamic-attention.spt')).kernel('dynamic_attention<f16>')
  const compiled = await kernel.schedule('gpu', 8, 8, 2, 2, 4).build(device)
  opened.push(compiled)
  for (const { name, inputs } of casesOf({ blocks: 3, b: 8, heads: 2, d: 5, e: 8 }, [1], halves)) {
    const prepared = await compiled.bind(...flatInputs(inputs))
    await prepared.run()
    expect((await prepared.verify()).problems, name).toEqual([])
    prepared.free()
  }
})

const PREPARED = [
  ['webgpu', 'gpu', [8, 8, 2, 2, 4]],
  ['cpu', 'gpu', [8, 8, 4, 2, 8]],
  ['cpu', 'cpu', [8, 8, 4, 3]],
] as const
test.each(sample(PREPARED, 6))(
  'on %s by %s(%j), with other blocks and columns in each run of one prepared kernel',
  async (on, name, args) => {
    const device = on === 'cpu' ? createCpuDevice() : await createNodeWebGpu()
    opened.push(device)
    const kernel = (await load('kernels/dynamic-attention.spt')).kernel('dynamic_attention')
    const compiled = await kernel.schedule(name, ...args).build(device)
    opened.push(compiled)
    const of = { blocks: 5, b: 8, heads: 2, d: 5, e: 8 }
    for (const causal of [0, 1]) {
      const prepared = await compiled.bind(...flatInputs(inputs(of, PATTERNS.nothing!, causal)))
      for (const [what, pattern] of Object.entries(PATTERNS)) {
        const { B, C, Q, K, V } = inputs(of, pattern, causal).tensors
        for (const [t, x] of Object.entries({ B, C, K, V })) await prepared.set(t, x.values as Float32Array)
        await prepared.run()
        expect((await prepared.verify()).problems, what).toEqual([])
        const O = (await prepared.get('O')).values as Float32Array
        const counts = (h: number, i: number, j: number): boolean =>
          (causal === 0 || j <= i) &&
          (pattern.column(h, j) || pattern.block(h, Math.floor(i / of.b), Math.floor(j / of.b)))
        const [q, k, v] = [Q, K, V].map((x) => x.values as Float32Array) as [
          Float32Array,
          Float32Array,
          Float32Array,
        ]
        const expected = attend({ ...of, tokens: of.blocks * of.b }, { Q: q, K: k, V: v }, 0.3, counts)
        expect(apart(O, expected), what).toBeLessThan(1e-5)
      }
      prepared.free()
    }
  },
)
