/** Kernels without a schedule on devices with threads: which form runs, and that it computes what the reference computes. */

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildDefault } from '../../src/api/built/build.ts'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { bindResident, convertForKernel, releaseConversions, upload } from '../../src/device.ts'
import { isDense } from '../../src/ir/coordinates/axis.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import {
  type Binding,
  type Built,
  type CoordTensor,
  coords,
  type Device,
  devices,
  type Kernel,
  load,
  type Tensor,
} from '../../src/node.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { predictor, useCostModel, Workspace } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'

const AXES = `
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)`

/** Loops over a matrix, or a tree, that meet, that do not, and that follow each other. */
const KERNELS: Readonly<Record<string, string>> = {
  rows: `kernel rows(m: size, n: size, d: size) {${AXES}
    buffer A: f32[i, j] in
    buffer B: f32[jd, f] in
    buffer C: f32[i, f] out
    iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
  }`,
  columns: `kernel columns(m: size, n: size, d: size) {${AXES}
    buffer A: f32[i, j] in
    buffer B: f32[i, f] in
    buffer C: f32[jd, f] out
    iterate sum [i, j, f] as RRS { C[j, f] += A[i, j] * B[i, f] }
  }`,
  elements: `kernel elements(m: size, n: size, d: size) {${AXES}
    buffer A: f32[i, j] in
    buffer B: f32[i, f] in
    buffer D: f32[jd, f] in
    buffer E: f32[i, j] out
    iterate dot [i, j, f] as SSR { E[i, j] += A[i, j] * B[i, f] * D[j, f] }
  }`,
  several: `kernel several(m: size, n: size, d: size) {${AXES}
    buffer A: f32[i, j] in
    buffer B: f32[jd, f] in
    buffer M: f32[i] local
    buffer C: f32[i, f] out
    iterate row [i] as S {
      iterate peak [j] as R { M[i] max= A[i, j] }
      iterate mix [j, f] as RS { C[i, f] += max(A[i, j] - M[i], -2) * B[j, f] }
    }
  }`,
  scaled: `kernel scaled(m: size, n: size, d: size, by: f32) {${AXES}
    buffer A: f32[i, j] in
    buffer B: f32[jd, f] in
    buffer T: f32[i, f] local
    buffer C: f32[i, f] out
    iterate sum [i, j, f] as SRS { T[i, f] += A[i, j] * B[j, f] }
    iterate scale [i, f] as SS { C[i, f] = by * T[i, f] }
  }`,
  tree: `kernel tree(m: size, n: size, l: size, d: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis k = sparse_variable(j, l)
    axis kd = dense_fixed(l)
    axis f = dense_fixed(d)
    buffer A: f32[i, j, k] in
    buffer B: f32[kd, f] in
    buffer C: f32[i, f] out
    iterate sum [i, j, k, f] as SRRS { C[i, f] += A[i, j, k] * B[k, f] }
  }`,
}
const FORMATS = `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"`
const kernelOf = async (name: string): Promise<Kernel> =>
  (await load(`${KERNELS[name]!}\n${FORMATS}`)).kernel()

/** Rows of `degree` elements, the first of `first`. */
function matrix(m: number, n: number, degree: number, first: number): CoordTensor {
  const random = new Random(5)
  const rows: number[] = []
  const columns: number[] = []
  for (let i = 0; i < m; i++)
    for (const j of new Set(Array.from({ length: i === 0 ? first : degree }, () => random.below(n)))) {
      rows.push(i)
      columns.push(j)
    }
  return coords([m, n], [rows, columns])
}

const traceOf = (kernel: Kernel): string => kernel.trace.join('; ')

test('the data select the variant: a long row is distributed, uniform rows are not', async () => {
  const kernel = await kernelOf('rows')
  const [even, long] = [matrix(3000, 40_000, 8, 8), matrix(3000, 40_000, 8, 30_000)].map((A) =>
    kernel.autoSchedule('cuda', { d: 128 }, { A }),
  )
  const guess = kernel.autoSchedule('cuda', { m: 3000, n: 40_000, d: 128 })
  expect(traceOf(even!)).toBe(traceOf(guess))
  expect(traceOf(long!)).toContain('fuse (sum.i, sum.j)')
  try {
    useCostModel('cuda', null)
    const blind = kernel.autoSchedule('cuda', { d: 128 }, { A: matrix(3000, 40_000, 8, 30_000) })
    expect(traceOf(blind)).toBe(traceOf(guess))
  } finally {
    useCostModel('cuda', undefined)
  }
})

test('scalars are not sizes, scheduled kernels are unchanged, and mismatched data are rejected', async () => {
  const kernel = await kernelOf('scaled')
  const A = matrix(300, 200, 4, 4)
  expect(traceOf(kernel.autoSchedule('cuda', { d: 32, by: 2 }, { A }))).toContain('require d % 4 == 0')
  const predict = predictor(kernel, { inputs: { tensors: { A }, params: { d: 32, by: 2 } } })
  expect(predict(kernel.parallel()).milliseconds).toBeGreaterThan(0)
  const own = (await kernelOf('rows')).unroll('f', 4)
  expect(own.autoSchedule('cuda', { d: 8 }, { A })).toBe(own)
  expect(refusal(() => kernel.autoSchedule('cuda', { d: 8 }, { Z: A })).code).toBe('bind/unknown-name')
})

let device: Device
beforeAll(async () => {
  device = await createNodeWebGpu()
})
afterAll(async () => {
  await device.dispose()
})

/** A tensor with some of the coordinates, and extents beside. */
const drawn = (order: number) =>
  fc.tuple(...Array.from({ length: order }, () => fc.integer({ min: 1, max: 9 }))).chain((shape) =>
    fc
      .uniqueArray(fc.tuple(...shape.map((n) => fc.nat(n - 1))), { maxLength: 40, selector: (c) => c.join() })
      .map((list) =>
        coords(
          shape,
          shape.map((_, k) => list.map((c) => c[k]!)),
        ),
      ),
  )

/** Ways to bind a matrix to a kernel that has no schedule, but a format for what is resident. */
const WAYS: Readonly<
  Record<string, (kernel: Kernel, compiled: Built, inputs: Bindings) => Promise<Binding>>
> = {
  'the host': async (_, compiled, inputs) => compiled.bind(...flatInputs(inputs)),
  async 'a workspace'(kernel, compiled, inputs) {
    const data = new Workspace(compiled.device, kernel, ...flatInputs(inputs))
    return data.bind((await buildDefault(kernel, compiled.device)).built)
  },
  async 'the device'(_, compiled, { tensors: { A, ...others }, params, seed }) {
    if (!compiled.compilation.kernel.reformats.length) return compiled.bind({ A, ...params }, { seed })
    const uploaded = await upload(compiled.device, A)
    const there = await convertForKernel(compiled, 'A', uploaded)
    uploaded.free()
    return bindResident(compiled, { A: there, ...denseOf(compiled, params, A), ...others, ...params })
  },
}
interface Bindings extends RunInputs {
  readonly tensors: { readonly A: CoordTensor }
  readonly params: Readonly<Record<string, number>>
  readonly seed: number
}

/** Beside resident tensors nothing is random. */
function denseOf({ compilation }: Built, params: Readonly<Record<string, number>>, { shape }: Tensor) {
  const sizes: Readonly<Record<string, number>> = { m: shape[0]!, n: shape[1]!, l: shape[2] ?? 0, ...params }
  const { buffers, axes } = compilation.source
  const random = new Random(11)
  return Object.fromEntries(
    buffers
      .filter((b) => b.role === 'in' && b.name !== 'A')
      .map((b) => {
        const over = b.axes.map((name) => axes.find((a) => a.name === name))
        const size = over.reduce(
          (n, a) => n * (isDense(a) ? evaluate(a.extent, new Map(Object.entries(sizes))) : 1),
          1,
        )
        return [b.name, Float32Array.from({ length: size }, () => random.below(9) - 4)]
      }),
  )
}

test('the default schedule agrees with the reference, on each device and for each kind of binding, with a model and without', async () => {
  const cpu = await devices.cpu()
  const kernels = new Map<string, { readonly kernel: Kernel; readonly on: Map<Device, Built> }>()
  for (const name of Object.keys(KERNELS))
    for (const format of name === 'tree' ? [''] : ['', 'csr', 'hyb(1, 2)']) {
      const plain = await kernelOf(name)
      const kernel = format === '' ? plain : plain.as('A', format)
      const on = new Map<Device, Built>()
      for (const d of [cpu, device]) on.set(d, await kernel.build(d))
      kernels.set(`${name} ${format}`.trim(), { kernel, on })
    }
  const cases = fc.constantFrom(...kernels.keys()).chain((name) =>
    fc.record({
      name: fc.constant(name),
      A: drawn(name === 'tree' ? 3 : 2),
      d: fc.constantFrom(1, 3, 4, 8, 32, 33),
      seed: fc.nat(1000),
      model: fc.boolean(),
      on: fc.constantFrom(cpu, device),
      way: fc.constantFrom(...Object.keys(WAYS)),
    }),
  )
  await fc.assert(
    fc.asyncProperty(cases, async ({ name, A, d, seed, model, on, way }) => {
      useCostModel(on.kind, model ? undefined : null)
      try {
        const params = { d, ...(name.startsWith('scaled') ? { by: 3 } : {}) }
        const { kernel, on: compiled } = kernels.get(name)!
        const prepared = await WAYS[way]!(kernel, compiled.get(on)!, { tensors: { A }, params, seed })
        try {
          const { ok, problems } = await prepared.verify()
          expect(problems.slice(0, 1)).toEqual([])
          expect(ok).toBe(true)
        } finally {
          prepared.free()
        }
      } finally {
        useCostModel(on.kind, undefined)
      }
    }),
    { numRuns: runs(50) },
  )
  for (const { on } of kernels.values()) for (const c of on.values()) c.release()
  await releaseConversions(device)
})

test('the variant does not depend on the kind of binding: host, workspace, device', async () => {
  const kernel = (await kernelOf('rows')).as('A', 'csr')
  const compiled = await kernel.build(device)
  const A = matrix(300, 4000, 8, 3000)
  const inputs = { tensors: { A }, params: { d: 8 }, seed: 1 }
  const chosen = kernel.autoSchedule(device, { d: 8 }, { A })
  expect(traceOf(chosen)).not.toBe(traceOf(kernel.autoSchedule(device, { m: 300, n: 4000, d: 8 })))
  for (const way of Object.values(WAYS)) {
    const prepared = await way(kernel, compiled, inputs)
    expect(prepared.code.compilation.printedLoopSteps).toEqual(chosen.compilation.printedLoopSteps)
    prepared.free()
  }
  compiled.release()
})

test('data are rejected after a release, and nothing is compiled for them', async () => {
  const kernel = await kernelOf('rows')
  const cpu = await devices.cpu()
  const compiled = await kernel.build(cpu)
  const inputs = { tensors: { A: matrix(30, 40, 5, 5) }, params: { d: 33 }, seed: 1 }
  compiled.release()
  await expect(compiled.bind(...flatInputs(inputs))).rejects.toMatchObject({
    diagnostics: [{ code: 'device/released-module' }],
  })
})

test('on cpu sizes determine the width of tiles', async () => {
  const kernel = await kernelOf('rows')
  const compiled = await kernel.build(await devices.cpu())
  const inputs = { tensors: { A: matrix(30, 40, 5, 5) }, seed: 1 }
  const widths: string[] = []
  for (const d of [4, 12, 24, 33, 64]) {
    const prepared = await compiled.bind(...flatInputs({ ...inputs, params: { d } }))
    widths.push(prepared.code.compilation.printedLoopSteps.find((s) => s.startsWith('split f'))!)
    prepared.free()
  }
  expect(widths).toEqual([4, 4, 8, 8, 16].map((by) => `split f by ${by} -> (fo, fi)`))
})

test('variants are reported with predictions, the selected one first', async () => {
  const kernel = await kernelOf('rows')
  const A = matrix(3000, 40_000, 8, 30_000)
  const forms = kernel.inspect.scheduleCandidates('cuda', { d: 128 }, { A })
  expect(traceOf(forms[0]!.kernel)).toBe(traceOf(kernel.autoSchedule('cuda', { d: 128 }, { A })))
  expect(new Set(forms.map((f) => f.text)).size).toBe(forms.length)
  expect(forms.every((f) => (f.milliseconds ?? 0) > 0)).toBe(true)
  // Without data nothing is expected.
  expect(kernel.inspect.scheduleCandidates('cuda', { d: 128 }).map((f) => f.milliseconds)).toContain(null)
  expect(kernel.unroll('f', 4).inspect.scheduleCandidates('cuda')).toEqual([])
})

test('trees have predictions for each variant too, unless the analysis takes too long', async () => {
  const kernel = await kernelOf('tree')
  const tree = (elements: number): CoordTensor => {
    const all = Array.from({ length: elements }, (_, e) => e)
    return coords(
      [64, 2048, 16],
      [all.map((e) => e >> 15), all.map((e) => (e >> 4) % 2048), all.map((e) => e % 16)],
    )
  }
  const expectations = (A: CoordTensor): (number | null)[] =>
    kernel.inspect.scheduleCandidates('cuda', { d: 32 }, { A }).map((f) => f.milliseconds)
  const small = expectations(tree(3000))
  expect(small.length).toBeGreaterThan(1)
  expect(small.every((ms) => (ms ?? 0) > 0)).toBe(true)
  expect(expectations(tree(2 ** 20 + 1))).toContain(null)
})

test('random data are bound in the variant that is selected for the others', async () => {
  const kernel = await kernelOf('rows')
  const compiled = await kernel.build(device)
  const A = matrix(60, 50, 5, 40)
  const prepared = await compiled.bind({ A, d: 8 }, { seed: 1 })
  expect((await prepared.verify()).ok).toBe(true)
  const chosen = kernel.autoSchedule(device, { d: 8 }, { A })
  expect(prepared.code.compilation.printedLoopSteps).toEqual(chosen.compilation.printedLoopSteps)
  prepared.free()
  compiled.release()
})
