/** Lists and sets of formats in searches: candidates get those of their own, and so do predictions and records. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import {
  fromTransferable,
  modelDataOf,
  termsOfCompilation,
  toTransferable,
} from '../../src/cost-model/prediction.ts'
import { coords, load } from '../../src/node.ts'
import { dataFingerprint } from '../../src/search/records/identity.ts'
import { predictor, space, tune, tuneAll } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { refusal } from '../support/refusal.ts'
import { simulatedDevice } from '../support/simulated-device.ts'

const program = await load(`import "sparsetile/kernels/formats.spt"
kernel product(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[jd] in
  buffer C: f32[i] out
  iterate s [i, j] as SR { C[i] += A[i, j] * B[j] }
}
schedule product.blocks { A as vbr(top, left) }
schedule product.squares(b) { A as bsr(b) }
schedule product.both choose by search { use blocks or squares(2) }
schedule product.nested choose by search { use both or squares(3) }
`)
const kernel = program.kernel()
const device = await simulatedDevice()

const cuts = (end: number) =>
  fc
    .uniqueArray(fc.integer({ min: 1, max: end }), { maxLength: 6 })
    .map((at) => Int32Array.from([...new Set([0, ...at, end])].sort((a, b) => a - b)))
const inputs = fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 30 })).chain(([m, n]) =>
  fc.record({
    A: fc.uniqueArray(fc.nat(m * n - 1), { minLength: 1, maxLength: 60 }).map((at) =>
      coords(
        [m, n],
        [at.map((x) => Math.floor(x / n)), at.map((x) => x % n)],
        Float32Array.from(at, (x) => 1 + (x % 5)),
      ),
    ),
    top: cuts(m),
    left: cuts(n),
  }),
)

test('names of lists come from formats of schedules and nested spaces', () => {
  const of = (kind: string) => ({ kind, tensor: 'A' })
  expect([...kernel.formatInputs()]).toEqual([
    ['top', of('list')],
    ['left', of('list')],
  ])
  expect([...kernel.allFormatInputs.keys()]).toEqual(expect.arrayContaining(['top', 'left', 'rows', 'cols']))
})

property([inputs], { numRuns: runs(8) })(
  'the terms of a kernel describe the arrays built with its lists, in any thread',
  ({ A, top, left }) => {
    const [m = 0, n = 0] = A.shape
    const list = (values: Int32Array) =>
      ({ kind: 'dense', shape: [values.length], values, dtype: 'i32' }) as const
    const data = {
      ...modelDataOf({ A }),
      formatInputs: { top: list(top), left: list(left), others: list(top) },
      params: { m, n },
    }
    const blocks = kernel.schedule('blocks').compilation
    const here = termsOfCompilation(blocks, data)
    // Each block that holds an element is stored.
    const block = (at: Int32Array, x: number): number => at.findIndex((end, k) => k > 0 && x < end)
    const held = new Set([...A.coords[0]!].map((i, e) => `${block(top, i)} ${block(left, A.coords[1]![e]!)}`))
    expect([...data.structures.values()].some((s) => [...s.params.values()].includes(held.size))).toBe(true)
    const sent = toTransferable(kernel.source, { ...data, tensors: { A, both: A }, samples: undefined })!
    expect(sent.formatInputs).toEqual(data.formatInputs)
    expect(termsOfCompilation(blocks, { ...fromTransferable(sent), tensors: { A } })).toEqual(here)
    const predict = predictor(kernel, { device: 'cpu', inputs: { tensors: { A, top, left } } })
    expect(predict(kernel.schedule('blocks')).milliseconds).toBeGreaterThan(0)
    expect(predict(kernel.schedule('squares', 2)).milliseconds).toBeGreaterThan(0)
    expect(
      refusal(() => predictor(kernel, { device: 'cpu', inputs: { tensors: { A, tops: top } } })).code,
    ).toBe('bind/unknown-name')
  },
)

test('every point of a space is measured, and data names depend on the lists', async () => {
  const A = coords(
    [6, 6],
    [
      [0, 1, 3, 5],
      [1, 1, 4, 0],
    ],
    Float32Array.of(1, 2, 3, 4),
  )
  const tensors = { A, top: Int32Array.of(0, 2, 6), left: [0, 3, 6] }
  const of = space('functions', kernel, (p) => {
    const b = p.number('b', [0, 2, 3])
    return (k) => (b === 0 ? k.as('A', 'vbr(top, left)') : k.as('A', 'bsr', b))
  })
  const given = { tensors, seed: 3 }
  const nested = await kernel.space('nested').bind(device, ...flatInputs(given))
  for (const s of [nested, of]) {
    const { trials, finalists } = await tune(kernel, {
      space: s,
      inputs: given,
      device,
      trials: 4,
      strategy: 'random',
    })
    expect(trials.map((t) => t.outcome.status)).toEqual(['measured', 'measured', 'measured'])
    expect(finalists.find((f) => f.name === 'default')!.outcome.status).toBe('measured')
    await expect(
      tune(kernel, {
        space: s,
        inputs: { tensors: { ...tensors, tops: [0, 6] }, seed: 3 },
        device,
        trials: 1,
      }),
    ).rejects.toThrow('bind/unknown-name')
  }
  const cases = [
    { name: 'a', inputs: given },
    { name: 'b', inputs: { ...given, tensors: { ...tensors, top: [0, 6] } } },
  ]
  const all = await tuneAll(kernel, { cases, device, space: () => nested, trials: 3 })
  expect(all.cases.map((c) => c.rejection)).toEqual([null, null])
  const named = (top: readonly number[]): string => {
    const list = { kind: 'dense', shape: [top.length], values: Int32Array.from(top), dtype: 'i32' } as const
    return dataFingerprint(kernel, { tensors: { A, top: list }, seed: 3 })
  }
  expect(named([0, 2, 6])).not.toBe(named([0, 3, 6]))
  expect(named([0, 2, 6])).toBe(named([0, 2, 6]))
})
