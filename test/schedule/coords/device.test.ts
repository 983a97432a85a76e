/** The same through the whole pipeline: bound in the caller's coordinates, lowered, run, read back. */
import { describe, expect, test } from 'vitest'
import type { Tensor } from '../../../src/formats/tensor.ts'
import { createCpuDevice } from '../../../src/runtime/cpu.ts'
import { agreeOnDevice, agreeOnStages, bind, expectedOf } from '../../laws/agree.ts'
import type { Sample } from '../../support/program-gen.ts'
import { compilationOf, type Data } from './apply.ts'
import { FORMATS, KERNELS, REFUSED, USES } from './formats.ts'
import { dataOf, only } from './matrices.ts'

/** Empty rows and columns and a long row; one element, so that most parts are empty; nothing. */
const MATRICES: readonly Data[] = [
  dataOf(5, 7, [0, 7, 8, 9, 10, 11, 12, 13, 22, 30, 33], 7),
  dataOf(3, 4, [5], 5),
  dataOf(0, 3, [], 2),
]

function sampleOf(data: Data, structure: boolean): Sample {
  const { m, n } = data.sizes as { m: number; n: number }
  const coords = [0, 1].map((d) => Int32Array.from(data.coords, (c) => c[d]!))
  const shape: Readonly<Record<string, readonly number[]>> = { B: [n, 2], X: [m, 2], x: [m] }
  const dense = (values: readonly number[], s: readonly number[]): Tensor => ({
    kind: 'dense',
    shape: s,
    values: Int32Array.from(values),
    dtype: 'i32',
  })
  const tensors: Record<string, Tensor> = {
    A: { kind: 'coords', shape: [m, n], coords, values: Int32Array.from(data.values.A!), dtype: 'i32' },
  }
  for (const [name, values] of Object.entries(data.dense)) tensors[name] = dense(values, shape[name]!)
  if (structure)
    for (const [name, list] of Object.entries(data.lists ?? {})) tensors[name] = dense(list, [list.length])
  return {
    text: '',
    params: data.sizes,
    tensors,
    reference: { params: data.sizes, buffers: { ...data.dense, A: { coords, values: data.values.A! } } },
    uses: new Set(),
  }
}

const device = createCpuDevice()

describe.each(Object.entries(KERNELS))('%s', (name, text) => {
  test.each(USES.filter((use) => !REFUSED[name]?.has(use)))('%s', async (use) => {
    const c = compilationOf(FORMATS + text, `A as ${use}`)
    const buffers = c.source.buffers.map((b) => b.name)
    for (const data of MATRICES) {
      const sample = sampleOf(only(data, buffers), use.includes('rows,'))
      const expected = expectedOf(sample, c)
      if (data === MATRICES[0]) agreeOnStages(c, bind(sample, c), expected)
      expect(await agreeOnDevice(device, c, bind(sample, c), expected)).toBe(true)
    }
  })
})
