/**
 * Formats that keep a mask take any statement: what is computed over blocks, padded rows and lists is what the reference computes
 * of the elements, whatever padding holds; where a fill is idle nobody asks.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { load } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { type CoordTensor, decoder } from '../../src/storage/tensor.ts'
import { sample } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'
import { refusal } from '../support/refusal.ts'
import { agreeOnAll, agreeOnDevice, agreeOnStages, verifiedOn } from './agree.ts'
import { APART, FORMATS, KERNEL_NAMES, KERNELS, ROWS, USES } from './masked-formats.ts'
import { parameters } from './property-cases.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

/** Each is made, and its stages verified, once. */
const compiled = new Map<string, Compilation>()

function compile(kernel: string, as: string): Compilation {
  const text = `${FORMATS}${KERNELS}\nschedule ${kernel}.s { A as ${as} }`
  const made = compiled.get(text) ?? parseProgram(text).kernel(kernel).schedule('s').compilation
  compiled.set(text, made)
  return made
}

function matrix(c: Choices, dtype: 'f32' | 'i32', square = false): CoordTensor {
  const m = 1 + c.below(8)
  const n = square ? m : 1 + c.below(8)
  const share = c.pick([40, 15, 90, 100])
  const at: (readonly [number, number])[] = []
  for (let i = 0; i < m; i++) for (let j = 0; j < n; j++) if (c.chance(share)) at.push([i, j])
  if (at.length === 0) at.push([c.below(m), c.below(n)])
  // Most below the fill, so that padding that is visited shows; some equal to it, which are elements.
  const values = at.map(() => c.pick([-3, -2, -1, -4, 0, 2]))
  return {
    kind: 'coords',
    shape: [m, n],
    coords: [Int32Array.from(at, ([i]) => i), Int32Array.from(at, ([, j]) => j)],
    values: dtype === 'f32' ? Float32Array.from(values) : Int32Array.from(values),
    dtype,
  }
}

async function agree(kernel: string, as: string, A: CoordTensor, onWebGpu: boolean): Promise<void> {
  const [m = 0, n = 0] = A.shape
  const x = Int32Array.from({ length: n }, (_, k) => (k % 3) - 1)
  const takesX = ['attend', 'update', 'product'].includes(kernel)
  const c = compile(kernel, as)
  const tensors = {
    A,
    ...(takesX && { x: { kind: 'dense' as const, shape: [n], values: x, dtype: 'i32' as const } }),
  }
  const bound = bindInputs(c.kernel, { tensors, params: kernel === 'pairs' ? { m } : { m, n } })
  const devices = onWebGpu ? [createCpuDevice(), webgpu] : [createCpuDevice()]
  if (kernel === 'softmax') {
    for (const device of devices) await verifiedOn(device, c, bound)
    return
  }
  const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
  agreeOnStages(c, bound, expected)
  for (const device of devices) await agreeOnDevice(device, c, bound, expected)
}

test('any statement under any masked format', async () => {
  await fc.assert(
    fc.asyncProperty(fc.noBias(choiceNumbers(150)), async (choices) => {
      const c = new Choices(choices)
      const as = c.pick(USES)
      const kernel = c.pick(KERNEL_NAMES)
      try {
        await agree(kernel, as, matrix(c, kernel === 'softmax' ? 'f32' : 'i32'), c.chance(8))
      } catch (e) {
        throw new Error(`${kernel}, ${as}: ${e instanceof Error ? e.stack : e}`)
      }
    }),
    parameters(40),
  )
})

test.each([...APART.map((as) => ['put', as] as const), ...ROWS.map((as) => ['pairs', as] as const)])(
  '%s under %s',
  async (kernel, as) => {
    await fc.assert(
      fc.asyncProperty(fc.noBias(choiceNumbers(150)), async (choices) => {
        const c = new Choices(choices)
        await agree(kernel, as, matrix(c, 'i32', kernel === 'pairs'), c.chance(8))
      }),
      parameters(8),
    )
  },
)

test('loops unaffected by the fill value equal those without a mask, on tensor cores too', async () => {
  const spmm = (await load('kernels/spmm.spt')).kernel('spmm')
  const plain = (text: string): string => text.replaceAll('bsr_masked', 'bsr')
  for (const as of ['bsr(16)', 'bsr_masked(16)'])
    expect(plain(spmm.as('A', as).show(2))).toBe(spmm.as('A', 'bsr(16)').show(2))
  // Scores over blocks are computed whole, weights are 0 again where there is no element, and nothing asks when they are summed.
  const attend = compile('attend', 'bsr_masked(4)').loops
  const asking = print2(attend)
    .split('\n')
    .filter((line) => line.includes('held['))
  expect(asking.map((line) => line.trim().split(' ')[0])).toEqual(['H[io_2', 'P[jo_indptr[io_3]'])
})

test.runIf(noNvcc === null)('CUDA code compiles', () => {
  const all = USES.flatMap((as) => KERNEL_NAMES.map((k) => [k, as] as const))
  const texts = sample(all, 32).flatMap(([k, as]) =>
    compile(k, as)
      .texts('cuda')
      .map((t) => t.text),
  )
  expect(compileTogether(texts)).toBe('')
})

test('formats without a mask are rejected, with a hint to use one', () => {
  const { code, hint } = refusal(() => compile('extremes', 'bsr(4)'))
  expect(code).toBe('schedule/format-padding')
  expect(hint).toContain('mask held')
  // One part has none.
  const mixed = 'bsr_masked(2) where (count(i, j by i / 2, j / 2) > 2) + bsr(2)'
  expect(refusal(() => compile('extremes', mixed)).code).toBe('schedule/format-padding')
})

test('a condition that the fill value does not satisfy skips padding', async () => {
  const text = `${FORMATS}
    kernel positive(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      buffer A: i32[i, j] in
      buffer H: i32[i] out
      buffer L: i32[i] out
      iterate high [i, j] as SR { if (A[i, j] > 0) { H[i] min= A[i, j] } }
      iterate low [i, j] as SR where (A[i, j] < 0) { L[i] max= A[i, j] }
    }
    schedule positive.s { A as bsr(2) }`
  const { compilation } = parseProgram(text).kernel('positive').schedule('s')
  await agreeOnAll(compilation, {
    tensors: { A: matrix(new Choices([7, 7, 0, 9, 80, 3, 99, 85, 2]), 'i32') },
  })
  const unmet = text.replace('A[i, j] > 0) { H', 'A[i, j] < 1) { H')
  expect(refusal(() => parseProgram(unmet).kernel('positive').schedule('s').compilation.loops).code).toBe(
    'schedule/format-padding',
  )
  const otherwise = text.replace('if (A[i, j] > 0) {', 'if (A[i, j] > 0) { let z = 1 } else {')
  expect(refusal(() => parseProgram(otherwise).kernel('positive').schedule('s').compilation.loops).code).toBe(
    'schedule/format-padding',
  )
})

const TURNED = (reduce: string): string => `${FORMATS}
kernel turned(m: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, m)
  buffer A: i32[i, j] in
  buffer T: i32[i, j] local
  buffer y: i32[i] out
  iterate make [i, j] as SS { T[i, j] ${reduce} A[i, j] + 3 }
  iterate sum [i, j] as SR { y[i] += T[j, i] }
}
schedule turned.s { A as bsr_masked(2) }`

test('a lookup at an absent coordinate gives the fill value, or nothing', async () => {
  const turned = new Map<string, Compilation>()
  const make = (reduce: string): Compilation => {
    const made = turned.get(reduce) ?? parseProgram(TURNED(reduce)).kernel('turned').schedule('s').compilation
    turned.set(reduce, made)
    return made
  }
  await fc.assert(
    fc.asyncProperty(fc.noBias(choiceNumbers(150)), fc.constantFrom('=', '+='), async (choices, reduce) => {
      await agreeOnAll(make(reduce), { tensors: { A: matrix(new Choices(choices), 'i32', true) } })
    }),
    { numRuns: parameters(8).numRuns! },
  )
  // What padding starts from is not the fill.
  expect(refusal(() => make('max=')).code).toBe('schedule/format-padding')
})

test('the mask of two tensors over the same axes is the union', async () => {
  const text = `${FORMATS}
kernel two(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: i32[i, j] in
  buffer B: i32[i, j] in
  buffer H: i32[i] out
  iterate high [i, j] as SR { H[i] max= A[i, j] + B[i, j] - 3 }
}
schedule two.s { A as bsr_masked(2) }`
  const { compilation } = parseProgram(text).kernel('two').schedule('s')
  await fc.assert(
    fc.asyncProperty(fc.noBias(choiceNumbers(150)), async (choices) => {
      const c = new Choices(choices)
      const A = matrix(c, 'i32')
      const kept = Array.from(A.values!, (_, e) => e).filter(() => c.chance(60))
      const B = {
        ...A,
        coords: A.coords.map((x) => Int32Array.from(kept, (e) => x[e]!)),
        values: Int32Array.from(kept, (e) => (e % 5) - 3),
      }
      await agreeOnAll(compilation, { tensors: c.chance(50) ? { A, B } : { A: B, B: A } })
    }),
    parameters(10),
  )
})

test('wide sums are not rounded if the mask is read', async () => {
  const text = `${FORMATS}
kernel wide(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer y: f16[i] out accumulate f32
  iterate sum [i, j] as SR { y[i] += A[i, j] * 1000 + 49 }
}
schedule wide.s { A as bsr_masked(4) }`
  const device = createCpuDevice()
  const compiled = await parseProgram(text).kernel('wide').schedule('s').build(device)
  const coords = [Int32Array.of(0, 0, 0), Int32Array.of(0, 1, 3)]
  const A: CoordTensor = {
    kind: 'coords',
    shape: [2, 4],
    coords,
    values: Float32Array.of(2, 2, 2),
    dtype: 'f32',
  }
  const prepared = await compiled.bind({ A })
  await prepared.run()
  // 3 × 2049 = 6147, of which f16 has 6148; each of them would be 2048.
  const half = decoder('f16')!
  expect(Array.from((await prepared.get('y')).values!, (x) => half(x))).toEqual([6148, 0])
})

test('a tensor that is changed in place keeps its fill where it has no element', async () => {
  const text = `${FORMATS}
kernel more(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] inout
  iterate each [i, j] as SS { A[i, j] += 3 }
}
schedule more.s { A as bsr_masked(2) }`
  const compiled = await parseProgram(text).kernel('more').schedule('s').build(createCpuDevice())
  const coords = [Int32Array.of(0, 1), Int32Array.of(0, 1)]
  const A: CoordTensor = {
    kind: 'coords',
    shape: [2, 2],
    coords,
    values: Float32Array.of(2, -3),
    dtype: 'f32',
  }
  const prepared = await compiled.bind({ A })
  await prepared.run()
  expect([...(await prepared.executable.values('A'))]).toEqual([5, 0, 0, 0])
})
