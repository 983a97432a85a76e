/** Temporaries over the lists that a run finds have room for what is listed alone. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { Choices } from '../support/choices.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { LIVE, matrix, sizeOf } from './live-gen.ts'
import { asWritten } from './live-properties.ts'
import { numbers, parameters } from './property-cases.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

/** What is computed of listed coordinates alone, and a sum by what others see of it. */
const gatedBy = (name: string, seen: string): string => `kernel ${name}(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer B: f32[i, j, q] in
  buffer H: f32[i, q] local
  buffer C: f32[q] out
  iterate sum [i, q, j] as SSR {
    if (A[i, q] != 0) { H[i, q] += B[i, j, q] }
  }
  iterate scatter [i, q] as RS { C[q] += ${seen} }
}`
const GATED = `format rows(w) over (i, j) {
  axis io = dense_fixed(i)
  axis go = dense_variable(io, j)
  axis jo = sparse_fixed(go, j, w)
  map (i, j) -> (i, rank(j by i) / w, j)
  inverse (io, go, jo) -> (io, jo)
}
${gatedBy('gated', 'A[i, q] * H[i, q]')}
${gatedBy('seen', 'H[i, q] + 1.0')}`
const GATES = {
  apart: ['', ''],
  fused: ['fuse (sum.io, sum.go) -> g fuse (scatter.io, scatter.go) -> g', ''],
  // Of two nests over one list, one alone.
  half: ['fuse (scatter.io, scatter.go) -> g', ''],
  dealt: [
    'fuse (sum.io, sum.go) -> g fuse (scatter.io, scatter.go) -> g',
    'atomic C split sum.g by 3 -> (round, b) reorder (b, round, sum.jo) bind b to block.x, sum.jo to thread.x cache_write H at sum.jo in register -> Hr compute_at scatter at sum.jo cache_write H at sum.jo in register',
  ],
  // By who visits all coordinates.
  seen: ['', ''],
  // Of a block that is listed, not each element holds something.
  blocks: ['', ''],
} as const

test.each(Object.keys(GATES) as (keyof typeof GATES)[])(
  'temporaries have the capacity of the lists, without further tests: %s',
  (name) => {
    const made = new Map<number, Kernel>()
    const of = (w: number): Kernel => {
      const before = made.get(w)
      if (before) return before
      const [first, then] = GATES[name]
      const kernel = name === 'seen' ? 'seen' : 'gated'
      const format = name === 'blocks' ? `blocks(${w}, 2)` : `rows(${w})`
      const steps = `A as ${format} live in place ${first} ${then}`
      const text = `${LIVE.blocks.text}\n${GATED}\nschedule ${kernel}.s { ${steps} }`
      const now = parseProgram(text).kernel(kernel).schedule('s')
      made.set(w, now)
      return now
    }
    const text = of(4).show(1)
    const axes = name === 'blocks' ? 'io, jo, ii, ji' : 'io, go, jo'
    expect(text).toContain(`buffer H: f32[${axes}] local`)
    expect(text.includes('if (')).toBe(name === 'blocks')
    // What no position has is nowhere, and nothing is filled.
    if (name !== 'blocks') expect(of(4).show(2)).not.toContain('fill H')
    return fc.assert(
      fc.asyncProperty(numbers, async (n) => {
        const c = new Choices(n)
        const [m, cols, k] = [sizeOf(c, 2), c.pick([0, 1, 5]), sizeOf(c, 4)]
        const dense = (values: Float32Array, ...shape: number[]) =>
          ({ kind: 'dense', dtype: 'f32', shape, values }) as const
        const B = Float32Array.from({ length: m * cols * k }, (_, e) => (e * 7) % 5)
        const tensors = { A: dense(matrix(c, m * k), m, k), B: dense(B, m, cols, k) }
        const { compilation } = of(c.pick([1, 2, 4]))
        if (name !== 'dealt') return agreeOnAll(compilation, { tensors })
        const { bound, expected } = asWritten(compilation, { tensors })
        await agreeOnDevice(webgpu, compilation.parallel(), bound, expected)
      }),
      parameters(name === 'dealt' ? 4 : 10),
    )
  },
  3_600_000,
)
