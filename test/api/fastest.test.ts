/** `fastest { … }`: the schedule of which the cost model expects the least time, of those that are legal on the data. */

import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { upload } from '../../src/device.ts'
import { coords, type Device, devices, type Kernel, load } from '../../src/node.ts'
import { type CostModel, costModel, predictor, useCostModel } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { integers } from '../support/kernels.ts'
import { property } from '../support/property.ts'
import { complaint } from './support.ts'

const LIST = ['gpu(8, 32)', 'gpu(2, 8)', 'hyb(1, 3, 64, 8, 32)', 'cpu', 'vector(4, 8, 4, 4)']
const choosing = async (list: readonly string[], rest = ''): Promise<Kernel> =>
  (
    await load(`import "sparsetile/kernels/spmm.spt"
schedule spmm.pick choose {
  when (d > 0) fastest { ${list.join('\n')} }
  ${rest}
}`)
  )
    .kernel('spmm')
    .schedule('pick')

/** Of m × 40, one to six elements a row. */
const matrix = (m: number, seed: number) => {
  const [rows, columns]: [number[], number[]] = [[], []]
  for (let i = 0; i < m; i++)
    for (let e = 0; e <= (i * 7 + seed) % 6; e++) {
      rows.push(i)
      columns.push((i * 3 + e * 5 + seed) % 40)
    }
  return coords([m, 40], [rows, columns], integers(rows.length, seed))
}

let cpu: Device
beforeAll(async () => {
  cpu = await devices.cpu()
})
afterEach(() => {
  for (const kind of ['cpu', 'webgpu', 'cuda'] as const) useCostModel(kind, undefined)
})
afterAll(() => cpu.dispose())

property([fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 64 }), fc.nat(5)], {
  numRuns: runs(4),
})('follows the predictor, in any order of the list', async (m, d, seed) => {
  const tensors = { A: matrix(m, seed) }
  const list = d % 4 === 0 ? LIST : LIST.slice(0, -1)
  const inputs = { tensors, params: { d } }
  const spmm = (await load('kernels/spmm.spt')).kernel('spmm')
  const predict = predictor(spmm, { device: 'cuda', inputs })
  const times = list
    .map((text) => {
      const [name = '', args = ''] = text.split(/[()]/)
      const numbers = args === '' ? [] : args.split(',').map(Number)
      return { text, milliseconds: predict(spmm.schedule(name, ...numbers)).milliseconds }
    })
    .sort((a, b) => a.milliseconds - b.milliseconds)
  for (const l of [list, list.toReversed()]) {
    const { selection } = await (await choosing(l)).choose('cuda', ...flatInputs(inputs))
    expect(selection.predictions.map((e) => e.milliseconds)).toEqual(times.map((t) => t.milliseconds))
    expect(selection.predictions[0]!.text).toBe(selection.text)
    expect(times.find((t) => t.text === selection.text)?.milliseconds).toBe(times[0]!.milliseconds)
  }
})

describe('without a prediction', () => {
  const inputs = { tensors: { A: matrix(9, 1) }, params: { d: 8 } }
  test('without a model the first candidate is selected', async () => {
    useCostModel('cuda', null)
    const { selection } = await (await choosing(LIST)).choose('cuda', ...flatInputs(inputs))
    expect([selection.text, selection.predictions, selection.costModel]).toEqual(['gpu(8, 32)', [], null])
  })

  test('without data the first candidate is selected', async () => {
    const { selection } = await (await choosing(LIST)).choose('cuda', { m: 5, n: 4, d: 8 })
    expect([selection.text, selection.predictions]).toEqual(['gpu(8, 32)', []])
  })

  test('candidates that the data do not fit are skipped', async () => {
    useCostModel('cuda', null)
    const k = await choosing(['vector(4, 8, 4, 4)', 'gpu(2, 8)'])
    const on = async (d: number) =>
      (await k.choose('cuda', ...flatInputs({ ...inputs, params: { d } }))).selection.text
    expect([await on(8), await on(7)]).toEqual(['vector(4, 8, 4, 4)', 'gpu(2, 8)'])
  })

  test('if no candidate fits, the error is that of the first', async () => {
    const k = await choosing(['vector(4, 8, 4, 4)', 'vector(4, 16, 4, 4)'])
    expect(await complaint(() => k.choose('cuda', ...flatInputs({ ...inputs, params: { d: 7 } })))).toContain(
      'choose/requirement: spmm.pick chooses vector(4, 8, 4, 4), which requires',
    )
  })
})

test('the selected kernel is correct, and its variants are those that were selected', async () => {
  const model = { ...costModel('cuda')!, kind: 'cpu' } as const
  useCostModel('cpu', model)
  const compiled = await (await choosing(['cpu', 'hyb(1, 3, 64, 8, 32)', 'gpu(2, 8)'])).build(cpu)
  for (const m of [3, 50]) {
    const prepared = await compiled.bind({ A: matrix(m, 2), B: integers(40 * 8, 3), d: 8 })
    expect((await prepared.verify()).problems).toEqual([])
    expect(prepared.selection!.predictions).toHaveLength(3)
    expect(prepared.selection!.costModel).toBe(model.chip)
    expect((compiled as unknown as { variants: string[] }).variants).toContain(prepared.selection!.text)
    prepared.free()
  }
  expect((compiled as unknown as { variants: string[] }).variants.length).toBeLessThan(3)
  compiled.release()
})

test('resident tensors are compared by their structure', async () => {
  useCostModel('cpu', { ...costModel('cuda')!, kind: 'cpu' })
  const A = matrix(50, 3)
  const k = await choosing(LIST)
  const here = await k.choose(cpu, { A, d: 8 })
  const there = await upload(cpu, A)
  const brought = await k.choose(cpu, { d: 8 }, { resident: { A: there } })
  expect(brought.selection.predictions).toEqual(here.selection.predictions)
  there.free()
})

test('an array that is given as undefined is compared as absent', async () => {
  const indptr = Int32Array.of(0, 2, 3, 5)
  const indices = Int32Array.of(0, 3, 1, 0, 2)
  const stored = (more: object) => {
    const level = { ...more, indptr, indices }
    return {
      kind: 'stored',
      shape: [3, 4],
      arrays: { j: level },
      values: Float32Array.of(1, 2, 3, 4, 5),
      dtype: 'f32',
    } as const
  }
  const k = await choosing(LIST)
  const expected = async (more: object) =>
    (await k.choose('cuda', { A: stored(more), d: 8 })).selection.predictions
  const plain = await expected({})
  expect(plain.length).toBeGreaterThan(1)
  expect(await expected({ mask: undefined })).toEqual(plain)
})

test('a dispatch checks for a model, and uses the list if there is one', async () => {
  const k = (
    await load(`import "sparsetile/kernels/spmm.spt"
schedule spmm.pick choose {
  when (webgpu and cost_model) fastest { gpu(2, 8)
    gpu(8, 32) }
  otherwise cpu
}`)
  )
    .kernel('spmm')
    .schedule('pick')
  const on = async (kind: 'cpu' | 'webgpu' | 'cuda') =>
    (await k.choose(kind, { A: matrix(9, 1), d: 8 })).selection
  const { schedule, predictions } = await on('webgpu')
  expect([schedule, predictions.length]).toEqual(['gpu', 2])
  expect((await on('cuda')).schedule).toBe('cpu')
  useCostModel('webgpu', null)
  expect((await on('webgpu')).schedule).toBe('cpu')
})

test('packaged and passed models belong to a device kind', async () => {
  const kinds = ['cpu', 'webgpu', 'cuda'] as const
  expect(kinds.map((k) => costModel(k)!.kind)).toEqual(kinds)
  const kernel = (await load('import "sparsetile/kernels/spmm.spt"')).kernel('spmm')
  const inputs = { tensors: { A: matrix(9, 1) }, params: { d: 8 } }
  const given = async () => predictor(kernel, { device: 'webgpu', inputs, model: costModel('cuda')! })
  expect(await complaint(given)).toContain('search/other-model')
})

test('invalid lists and models are rejected', async () => {
  expect(await complaint(() => choosing([]))).toContain('check/empty-choice')
  expect(await complaint(() => choosing(['gpu(8, 32)', 'nowhere(3)']))).toContain('check/unknown-schedule')
  const model = costModel('cuda')!
  const { kind: _, ...kindless } = model
  for (const other of [{ ...model, version: 99 }, kindless, costModel('webgpu')!])
    expect(await complaint(async () => useCostModel('cuda', other as CostModel))).toContain(
      'search/other-model',
    )
  expect(await complaint(async () => useCostModel('tpu' as never, null))).toContain('api/argument')
})
