/**
 * Formats that keep a mask take any statement: what is computed over blocks, padded rows and lists is what the reference computes
 * of the elements, whatever padding holds; where a fill is idle nobody asks.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/program.ts'
import { reference } from '../../src/reference/index.ts'
import { type Bound, bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile.ts'
import { compileOn, Executable, lanesOf } from '../../src/run/execute.ts'
import { verify } from '../../src/run/verify.ts'
import { createCpuDevice } from '../../src/runtime/cpu.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu-node.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { agreeOnDevice, agreeOnStages } from './agree.ts'
import { parameters } from './law.ts'
import { APART, FORMATS, KERNEL_NAMES, KERNELS, ROWS, USES } from './masks-texts.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
}, 120_000)
afterAll(() => webgpu.dispose())

const compile = (kernel: string, as: string): Compilation =>
  parseProgram(`${FORMATS}${KERNELS}\nschedule ${kernel}.s { A as ${as} }`).kernel(kernel).schedule('s')
    .compilation

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

async function verified(device: Device, c: Compilation, bound: Bound): Promise<void> {
  const executable = await Executable.create(await compileOn(device, c.planFor(lanesOf(device))), bound)
  try {
    await executable.poison()
    await executable.run()
    expect((await verify(c.source, executable)).problems).toEqual([])
  } finally {
    executable.free()
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
    for (const device of devices) await verified(device, c, bound)
    return
  }
  const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
  agreeOnStages(c, bound, expected)
  for (const device of devices) expect(await agreeOnDevice(device, c, bound, expected)).toBe(true)
}

test('any statement under any of them', async () => {
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
    parameters(120),
  )
}, 600_000)

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
  600_000,
)
