/** Software adapters run `parallel()` where nobody named a schedule and the work does not repay compiling another one. */

import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { iterationsIn, PLAIN_ITERATIONS } from '../../src/api/auto-schedule/software-adapter-schedule.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, type Device, dense, devices, load } from '../../src/node.ts'
import { costModel, useCostModel } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { integers } from '../support/kernels.ts'
import { property } from '../support/property.ts'

const fake = (isSoftware: boolean, name = 'some adapter'): Device =>
  ({
    ...{ kind: 'webgpu', name, isSoftware, storage: 'words', features: new Set(['subgroup_size(4)']) },
    limits: {
      ...{ maxBufferBytes: 2 ** 28, maxBindingBytes: 2 ** 27, maxBuffersPerLaunch: 8 },
      ...{ maxThreadsPerBlock: 256, maxBlockDim: [256, 256, 64], maxGridDim: [65535, 65535, 65535] },
      maxSharedBytes: 16384,
    },
  }) as unknown as Device
const [software, hardware] = [fake(true), fake(false)]

const PRODUCT = `kernel q(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer A: f32[i, p] in
  buffer B: f32[p, j] in
  buffer C: f32[i, j] out
  iterate t [i, j, p] as SSR { C[i, j] += A[i, p] * B[p, j] }
}`
const zeros = (rows: number, columns: number) => dense([rows, columns], new Float32Array(rows * columns))

/** Of n × n with so many elements in each of the first rows. */
function banded(n: number, rows: number, each: number) {
  const at = Array.from({ length: rows * each }, (_, k) => k)
  const columns = [at.map((k) => Math.floor(k / each)), at.map((k) => k % each)]
  return coords([n, n], columns, integers(at.length, 1))
}

afterEach(() => useCostModel('webgpu', undefined))

describe('the default dispatch', async () => {
  const spmm = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
  const sizes = fc.record({ rows: fc.nat(60), each: fc.nat(40), d: fc.integer({ min: 1, max: 1 << 20 }) })

  property([sizes], { numRuns: runs(20) })(
    'is evaluated on software adapters only for much work',
    async ({ rows, each, d }) => {
      const inputs = { tensors: { A: banded(60, rows, each) }, params: { d } }
      const onGpu = (await spmm.schedule('auto').choose(hardware, ...flatInputs(inputs))).selection
      const { kernel, selection } = await spmm.choose(software, ...flatInputs(inputs))
      expect(selection.text === 'parallel()').toBe(rows * each * d <= PLAIN_ITERATIONS)
      if (selection.text === 'parallel()') {
        expect([selection.schedule, selection.dispatch, kernel.trace]).toEqual([null, 'auto', []])
        expect(selection.reason).toContain('software adapter')
      } else expect(selection.schedule).toBeTypeOf('string')
      // Elsewhere, and where it is named, nothing takes its place.
      expect((await spmm.choose(hardware, ...flatInputs(inputs))).selection.text).toBe(onGpu.text)
      expect(
        (await spmm.schedule('auto').choose(software, ...flatInputs(inputs))).selection.schedule,
      ).toBeTypeOf('string')
    },
  )

  test('uses the model of the adapter, not that of another chip', async () => {
    const inputs = { tensors: { A: banded(60, 60, 40) }, params: { d: 1 << 16 } }
    const chosenOn = async (d: Device) => (await spmm.choose(d, ...flatInputs(inputs))).selection
    expect((await chosenOn(hardware)).costModel).toBe(costModel('webgpu')!.chip)
    expect((await chosenOn(software)).costModel).toBeNull()
    expect((await chosenOn(fake(true, costModel('webgpu')!.chip))).costModel).not.toBeNull()
    useCostModel('webgpu', costModel('webgpu'))
    expect((await chosenOn(software)).costModel).not.toBeNull()
  })
})

describe('a kernel without a schedule', async () => {
  const kernel = (await load(PRODUCT)).kernel()
  property([fc.tuple(fc.nat(3000), fc.nat(3000), fc.nat(30))], { numRuns: runs(20) })(
    'has no other variant on software adapters, except for much work',
    ([m, n, k]) => {
      const tensors = { A: zeros(m, k), B: zeros(k, n) }
      const [first, ...others] = kernel.inspect.scheduleCandidates(software, {}, tensors)
      const isPlain = m * n * k <= PLAIN_ITERATIONS
      expect(first!.text === 'parallel()').toBe(isPlain)
      if (isPlain) expect([others, first!.kernel.trace]).toEqual([[], kernel.parallel().trace])
      expect(kernel.inspect.scheduleCandidates(hardware, {}, tensors)[0]!.text).not.toBe('parallel()')
    },
  )

  test('has the variants of the device kind that is passed', () => {
    const tensors = { A: zeros(3, 3), B: zeros(3, 3) }
    expect(kernel.inspect.scheduleCandidates('webgpu', {}, tensors)[0]!.text).not.toBe('parallel()')
  })
})

test.each([
  ['in a nest', 'iterate t [i] as S { iterate u [j] as R { C[i] += A[i, j] } }', 4 + 4 * 3],
  ['of several', 'iterate t [i, j] as SR { C[i] += A[i, j] }\niterate u [i] as S { C[i] = C[i] }', 5 + 4],
])('iterations %s are counted at most', async (_, body, most) => {
  const program = await load(`kernel q(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer C: f32[i] inout
  ${body}
}`)
  const A = coords(
    [4, 3],
    [
      [0, 0, 1, 2, 3],
      [0, 1, 1, 2, 0],
    ],
    [1, 1, 1, 1, 1],
  )
  expect(
    iterationsIn(
      program.kernel().source,
      new Map([
        ['m', 4],
        ['n', 3],
      ]),
      { A },
    ),
  ).toBe(most)
})

test('small data run under parallel() on SwiftShader, with equal results', async () => {
  const device = await devices.webgpu({ adapter: 'swiftshader' })
  try {
    const kernel = (await load(PRODUCT)).kernel()
    const tensors = { A: dense([3, 3], integers(9, 1)), B: dense([3, 3], integers(9, 2)) }
    const prepared = await (await kernel.build(device)).bind(tensors)
    const plain = await kernel.parallel().build(device, { auto: false })
    expect(prepared.code.program.plan.texts.map((t) => t.text)).toEqual(
      plain.program.plan.texts.map((t) => t.text),
    )
    await prepared.run()
    expect((await prepared.verify()).ok).toBe(true)
  } finally {
    await device.dispose()
  }
})
