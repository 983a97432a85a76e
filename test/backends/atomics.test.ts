/** Updates of one element by many threads at once, for every element type and reducer. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SPELLINGS } from '../../src/backends/targets/cuda/spellings.ts'
import { packAtomics } from '../../src/backends/vectors/vector-atomics.ts'
import type { Stmt } from '../../src/ir/statements/loops.ts'
import { stmt } from '../../src/ir/statements/tree.ts'
import type { Dtype } from '../../src/ir/values/dtype.ts'
import { coords, devices, load } from '../../src/node.ts'
import type { Device } from '../../src/runtime/device.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'
import { at, buffer, type Operand, reduce, store } from '../support/stage2-builders.ts'

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
  buffer y: ${t}[c] out accumulate ${t}
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
      const compiled = await (await scheduled(t, reducer)).build(device)
      const prepared = await compiled.bind({ A })
      const { problems } = await prepared.verify()
      expect([device.kind, problems]).toEqual([device.kind, []])
      const { values, dtype } = await prepared.get('y')
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
      const compiled = await (await scheduled('bool', reducer)).build(device)
      const prepared = await compiled.bind({ m: 40, n: 9 }, { seed: 4 })
      expect([device.kind, (await prepared.verify()).problems]).toEqual([device.kind, []])
      prepared.free()
    }
  })
})

test.each([
  ['f64', '__longlong_as_double(seen)'],
  ['f32', '__uint_as_float(seen)'],
  ['i32', '(int)seen'],
  ['u32', '(unsigned)(seen *'],
  ['f16', '(unsigned short)((seen >> shift) & 0xffffu)'],
  ['i8', '(signed char)((seen >> shift) & 0xffu)'],
] as const)('CUDA reads the word around an element of %s as one', async (t, old) => {
  const { text } = (await scheduled(t, '*')).emit('cuda')[0]!
  expect(text).toContain(old)
})

describe('atomic updates of neighbours', () => {
  const update = (buffer: string, index: number, value: Operand = 1) =>
    reduce(at(buffer, [index]), '+', value, { atomic: true })
  const packed = (list: readonly Stmt[], width: number): readonly string[] =>
    packAtomics(list, {
      element: ({ targets: [t] }) =>
        t!.index[0]!.kind === 'const' ? { key: t!.buffer, constant: t!.index[0]!.value } : undefined,
      widths: () => [width],
    }).map((s) => {
      const t = s.kind === 'vector_store' ? s.target : s.kind === 'reduce' ? s.targets[0]! : undefined
      if (!t) return s.kind
      const [e] = t.index
      return `${t.buffer}${e!.kind === 'const' && e!.value}${s.kind === 'vector_store' ? `:${s.values.length}` : ''}`
    })

  test('are vectorised if the first address is a multiple of the width', () => {
    expect(packed([update('C', 0), update('C', 1)], 2)).toEqual(['C0:2'])
    expect(packed([update('C', 1), update('C', 2)], 2)).toEqual(['C1', 'C2'])
    expect(packed([update('C', -2), update('C', -1)], 2)).toEqual(['C-2:2'])
    expect(packed([update('C', 0), update('C', 1), update('C', 2)], 2)).toEqual(['C0:2', 'C2'])
    expect(
      packed(
        [0, 1, 2, 3].map((k) => update('C', k)),
        2,
      ),
    ).toEqual(['C0:2', 'C2:2'])
  })

  test('are vectorised in one buffer, if no value changes in between', () => {
    expect(packed([update('C', 0), update('D', 1)], 2)).toEqual(['C0', 'D1'])
    const put = store(at('x', [0]), 2)
    expect(packed([update('C', 0), put, update('C', 1)], 2)).toEqual(['C0:2', 'store'])
    expect(packed([update('C', 0), put, update('C', 1, at('x', [0]))], 2)).toEqual(['C0', 'store', 'C1'])
    const meet = stmt<Stmt>({ kind: 'barrier' })
    expect(packed([update('C', 0), meet, update('C', 1)], 2)).toEqual(['C0', 'barrier', 'C1'])
    expect(packed([update('C', 0), store(at('C', [5]), 2), update('C', 1)], 2)).toEqual(['C0', 'store', 'C1'])
  })

  test('are vectorised on CUDA for floats in global memory that are added', () => {
    const of = (scope: 'global' | 'shared', dtype: Dtype, op: string) =>
      SPELLINGS.atomicWidths({ ...buffer('C', [8], 'out', { dtype }), scope }, op)
    expect(of('global', 'f32', '+')).toEqual([4, 2])
    for (const other of [of('shared', 'f32', '+'), of('global', 'i32', '+'), of('global', 'f32', 'max')])
      expect(other).toEqual([])
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
