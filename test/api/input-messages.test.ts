/** Errors about what is bound and named: they lead to the buffer, step, kernel or place that is meant. */

import { afterAll, describe, expect, test } from 'vitest'
import * as api from '../../src/node.ts'
import { Folder, spt } from '../cli/support.ts'
import { errorOf, TEXT } from './support.ts'

const A = api.coords([2, 2], [Int32Array.of(0, 1), Int32Array.of(1, 0)], [1, 2])
const B = new Float32Array(4)
const params = { d: 2 }
const kernel = async () => (await api.load(TEXT)).kernel('mul')
const diagnostic = async (work: () => unknown) => (await errorOf(work)).diagnostics[0]!

describe('inputs of a run', () => {
  // biome-ignore lint/suspicious/noExplicitAny: calls that TypeScript would refuse are what is tested
  const run = async (...given: [any, any?]) =>
    (await (await kernel()).build(await api.devices.cpu()))(...given)

  test('tensors and sizes are named directly, and options are apart', async () => {
    expect((await diagnostic(() => run({ tensors: { A, B } }))).hint).toContain('mul({ A, B, d: 32 })')
    expect((await diagnostic(() => run({ A, B }, { d: 2 }))).hint).toContain('mul({ d, … })')
  })

  test.each([4, 5])('a dense output of %i values is rejected by its own name', async (n) => {
    const d = await diagnostic(() => run({ A, B, C: new Float32Array(n), ...params }))
    expect(d).toMatchObject({ code: 'bind/not-input', message: expect.stringContaining('C is an output') })
  })

  test('bare values of another length get no hint that keeps the length', async () => {
    const d = await diagnostic(() => run({ A, B: new Float32Array(3), ...params }))
    expect(d).toMatchObject({ code: 'bind/values-length', expected: '4 values' })
    expect(d.hint).toBeUndefined()
  })
})

test('steps on coordinates count in the number of a step', async () => {
  const k = (await kernel()).as('A', 'bsr', 2)
  expect((await diagnostic(() => k.split('ii', 0))).message).toContain('(step 2: ')
})

test('loops of one name: the candidates are the hint', async () => {
  const text = `kernel two(n: size) {
  axis i = dense_fixed(n)
  buffer x: f32[i] in
  buffer t: f32[i] local
  buffer y: f32[i] out
  iterate layer [i] as S { t[i] = x[i] + 1 }
  iterate act [i] as S { y[i] = t[i] * 2 }
}`
  const k = (await api.load(text)).kernel()
  expect((await diagnostic(() => k.split('i', 2))).hint).toBe('write `layer.i` or `act.i`')
})

test('a parameter without a type', async () => {
  const d = await diagnostic(() => api.load('kernel layer(m, n, d) {}'))
  expect(d.hint).toContain('`m: size`')
})

describe('spt check', () => {
  const folder = new Folder()
  afterAll(() => folder.remove())
  const format = `format rows over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`
  test('reports a coordinate that a format omits', async () => {
    const text = `${format}format left over (i, j) { part rows where (j < 100) }`
    const { code, out } = await spt(['check', folder.file('left.spt', text)])
    expect(out).toContain('format left (omits elements: (i, j) = (0, 100) of 201 × 202)')
    expect(out).toContain('format rows,')
    expect(code).toBe(0)
  })

  test('reports one overlap once', async () => {
    const text = `${format}format both over (i, j) { part rows where (j < 9) part rows where (j > 5) }
${TEXT}
schedule mul.a { A as both }`
    const { code, err } = await spt(['check', folder.file('both.spt', text)])
    expect(err.split('format/overlap')).toHaveLength(2)
    expect(code).toBe(1)
  })
})

test('a file of the data folder of the package is found by its name', async () => {
  const d = await diagnostic(() => api.readTensor('cora.mtx'))
  expect(d.hint).toContain("'sparsetile/data/cora.mtx'")
})
