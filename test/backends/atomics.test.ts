/** Updates of one element by many threads at once, for every element type and reducer. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Dtype } from '../../src/ir/dtype.ts'
import { coords, devices, load } from '../../src/node.ts'
import type { Device } from '../../src/runtime/device.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'

const TYPES: readonly Dtype[] = ['f32', 'f16', 'bf16', 'i32', 'u32', 'i8', 'u8']
const REDUCERS = {
  '+': (x: number, y: number) => x + y,
  '*': (x: number, y: number) => x * y,
  min: Math.min,
  max: Math.max,
} as const
type Reducer = keyof typeof REDUCERS

const START: Readonly<Record<Reducer, number>> = { '+': 0, '*': 1, min: Infinity, max: -Infinity }

const text = (t: Dtype, reducer: string): string => `kernel columns(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis c = dense_fixed(n)
  buffer A: ${t}[i, j] in
  buffer y: ${t}[c] out
  iterate body [i, j] as RR { y[j] ${reducer}= A[i, j] }
}`

const scheduled = async (t: Dtype, reducer: string) =>
  (await load(text(t, reducer)))
    .kernel()
    .split('i', 16, ['io', 'ii'])
    .atomic('y')
    .bind({ io: 'block.x', ii: 'thread.x' })

let all: readonly Device[]
beforeAll(async () => {
  all = [await devices.cpu(), await devices.webgpu()]
})
afterAll(async () => {
  for (const d of all) await d.dispose()
})

const M = 100
/** Few columns next to each other, so that narrow elements share words and many threads share elements. */
const N = 5

/** Column 4 stays empty; column 3 has one entry. Values keep every partial result exact in every type. */
const entries = (t: Dtype, reducer: Reducer): [number, number, number][] =>
  Array.from({ length: M }, (_, i) => {
    const unsigned = t === 'u8' || t === 'u32'
    if (reducer === '*')
      return [i, i % 3, i < 6 ? 2 : unsigned || i % 2 === 0 ? 1 : -1] as [number, number, number]
    const v = reducer === '+' ? (i % 5) - (unsigned ? 0 : 2) : ((i * 37) % 101) - (unsigned ? 0 : 50)
    return [i, i % 3, v] as [number, number, number]
  }).concat([[7, 3, 3]])

describe.each(TYPES)('%s', (t) => {
  test.each(Object.keys(REDUCERS) as Reducer[])('%s', async (reducer) => {
    const at = entries(t, reducer)
    const want = new Array<number>(N).fill(START[reducer])
    for (const [, j, v] of at) want[j] = REDUCERS[reducer](want[j]!, v)
    const A = coords(
      [M, N],
      [at.map((e) => e[0]), at.map((e) => e[1])],
      at.map((e) => e[2]),
    )
    for (const device of all) {
      const compiled = await (await scheduled(t, reducer)).compile(device)
      const prepared = await compiled.prepare({ tensors: { A } })
      const { problems } = await prepared.verify()
      expect([device.kind, problems]).toEqual([device.kind, []])
      const { values, dtype } = await prepared.read('y')
      // Identities of min and max of integers are the ends of their range: only written columns are compared.
      if (t !== 'f16' && t !== 'bf16') expect([...values!].slice(0, 4), device.kind).toEqual(want.slice(0, 4))
      expect(dtype).toBe(t)
      prepared.free()
      compiled.release()
    }
  })
})

describe('bool', () => {
  test.each(['and', 'or'])('%s', async (reducer) => {
    for (const device of all) {
      const compiled = await (await scheduled('bool', reducer)).compile(device)
      const prepared = await compiled.prepare({ params: { m: 40, n: 9 }, seed: 4 })
      expect([device.kind, (await prepared.verify()).problems]).toEqual([device.kind, []])
      prepared.free()
    }
  })
})

test.skipIf(noNvcc)('all compile as CUDA', async () => {
  const texts: string[] = []
  for (const t of [...TYPES, 'f64'] as const)
    for (const reducer of Object.keys(REDUCERS)) {
      const k = texts.length
      const [module] = (await scheduled(t, reducer)).emit('cuda')
      texts.push(`namespace n${k} {\n${module!.text.replaceAll('columns_', `columns${k}_`)}\n}`)
    }
  for (const reducer of ['and', 'or'])
    texts.push(
      `namespace of_${reducer} {\n${(await scheduled('bool', reducer)).emit('cuda')[0]!.text.replaceAll('columns_', `${reducer}_`)}\n}`,
    )
  expect(compileCuda([texts.join('\n')])).toBe('')
})
if (noNvcc) console.log(`skipped: compiling CUDA: ${noNvcc}`)
