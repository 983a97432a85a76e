/** Formats whose structure is found in each run: results are the reference's, lists those of the host. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { runLoops } from '../../src/api/stages/stage-check.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { sample } from '../support/cases.ts'
import { Choices } from '../support/choices.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { KERNELS, LIVE, live, matrix } from './live-gen.ts'
import { asWritten, property, SCHEDULES, sameLists, scheduled, told } from './live-properties.ts'
import { numbers, parameters } from './property-cases.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

test.each(SCHEDULES)(
  'a product equals the reference, at every stage and on the cpu: %s',
  (name) => property(24, (s) => agreeOnAll(scheduled(s, name), s.inputs)),
  3_600_000,
)

test.each(SCHEDULES)(
  'the same holds on WebGPU: %s',
  (name) =>
    property(8, async (s) => {
      const c = scheduled(s, name)
      const { bound, expected } = asWritten(c, s.inputs)
      await agreeOnDevice(webgpu, c, bound, expected)
    }),
  3_600_000,
)

test.each(SCHEDULES)(
  'the lists equal those built on the host: %s',
  (name) =>
    property(40, (s) => {
      const c = scheduled(s, name)
      const memory = runLoops(c.loops, bindInputs(c.kernel, s.inputs), 'forward')
      const host = bindInputs(scheduled(s.host, 'host').kernel, s.host.inputs).arrays
      sameLists(s.format, memory, host, name === 'fused')
    }),
  3_600_000,
)

test('skipped elements may have any value, and NaN is kept', async () => {
  const dense = (shape: readonly number[], ...values: readonly number[]) =>
    ({ kind: 'dense', dtype: 'f32', shape, values: Float32Array.from(values) }) as const
  const A = dense([2, 4], 1, -0, 0, 0, 0, -0, 0, Number.NaN)
  const B = dense([4, 1], 5, Number.NaN, Number.POSITIVE_INFINITY, 2)
  // Written before: −0 is 1 · −0, what is no number is 0 · ∞.
  const X = dense([2, 4], 1, -1, 0, -1, 0, 1, -1, 0)
  const M = dense([2, 4], 1, 0, 1, 0, 2, -0, 0, Number.POSITIVE_INFINITY)
  const masked = KERNELS.left
    .replace('A: f32[i, q] in', 'X: f32[i, q] in buffer M: f32[i, q] in buffer A: f32[i, q] local')
    .replace('iterate mul', 'iterate mask [i, q] as SS { A[i, q] = X[i, q] * M[i, q] } iterate mul')
  const cases = (['panels', 'strips'] as const).flatMap((name) => [
    [name, KERNELS.left, { A, B }] as const,
    [name, masked, { X, M, B }] as const,
  ])
  // Software compiles each for a second.
  const onGpu = new Set(sample(cases, 1))
  for (const of of cases)
    for (const device of [createCpuDevice(), ...(onGpu.has(of) ? [webgpu] : [])]) {
      const [name, kernel, tensors] = of
      const text = `${LIVE[name].text}\n${kernel}\nschedule product.live { A as ${name}(2, 2) live in place }`
      const compiled = await parseProgram(text).kernel().schedule('live').build(device)
      const { C } = await compiled(tensors)
      expect(Array.from((C as { values: ArrayLike<number> }).values)).toEqual([5, Number.NaN])
    }
})

test('a list without a parent axis', async () => {
  const text = `format held(b) over (i) {
  axis io = sparse_variable(ceildiv(i, b))
  axis ii = dense_fixed(b)
  map (i) -> (i / b, i % b)
  inverse (io, ii) -> (io * b + ii)
}
kernel product(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer x: f32[i] in
  buffer A: f32[i, j] in
  buffer y: f32[j] out
  iterate sum [j, i] as SR { y[j] += x[i] * A[i, j] }
}
schedule product.live { x as held(3) live in place }`
  const c = parseProgram(text).kernel().schedule('live').compilation
  expect(c.parallel().plan.steps.filter((s) => s.kind === 'launch').length).toBe(3)
  await fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const choices = new Choices(n)
      const [m, cols] = [choices.pick([0, 1, 95, 97, 3073, 200]), choices.pick([1, 3])]
      const dense = (shape: readonly number[], values: Float32Array) =>
        ({ kind: 'dense', dtype: 'f32', shape, values }) as const
      const A = Float32Array.from({ length: m * cols }, (_, k) => k % 7)
      const tensors = { x: dense([m], matrix(choices, m)), A: dense([m, cols], A) }
      await agreeOnAll(c, { tensors })
    }),
    parameters(6),
  )
})

test('an output with the structure of a live tensor has one position in every format', async () => {
  const kernel = KERNELS.left
    .replace('buffer B:', 'buffer D: f32[i, q] out buffer B:')
    .replace(
      'iterate mul',
      'iterate put [i, q] as SS { if (A[i, q] != 0) { D[i, q] = A[i, q] * 2.0 } } iterate mul',
    )
  await fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const s = live(new Choices(n), undefined, 'left')
      const compilation = scheduled({ text: s.text.replace(KERNELS.left, kernel) }, 'live')
      return told([s.text, s.sizes], () => agreeOnAll(compilation, s.inputs))
    }),
    parameters(12),
  )
}, 3_600_000)

test('an inout tensor with additions', async () => {
  const kernel = KERNELS.left
    .replace('A: f32[i, q] in', 'X: f32[i, q] in buffer A: f32[i, q] inout')
    .replace('iterate mul', 'iterate add [i, q] as SS { A[i, q] += X[i, q] } iterate mul')
  await fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const c = new Choices(n)
      const s = live(c, undefined, 'left')
      const { A, B } = s.inputs.tensors! as never as Record<string, { readonly values: Float32Array }>
      // What was there may be gone, and there may be what was not.
      const added = s.other()
      const values = A!.values.map((x, e) => (e % 2 === 0 && added[e] ? -x : added[e]!))
      const X = { ...A, values }
      const compilation = scheduled({ text: s.text.replace(KERNELS.left, kernel) }, 'live')
      return told([s.text, s.sizes], () => agreeOnAll(compilation, { tensors: { A, B, X } as never }))
    }),
    parameters(10),
  )
}, 3_600_000)
