/** No value of ready-made arrays is dropped silently: positions that store no element hold the fill value. */
import { test as property } from '@fast-check/vitest'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, devices, load, stored, type Tensor } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'

const device = await devices.cpu()
const ints = (...xs: number[]): Int32Array => Int32Array.from(xs)
const sums = (axes: string, fill = ''): string => `import "sparsetile/kernels/formats.spt"
kernel sums(m: size, n: size) {
  ${axes}
  buffer A: f32[i, j] in${fill}
  buffer y: f32[i] out
  iterate all [i, j] as SR { y[i] += A[i, j] }
}`
const csr = await load(sums('axis i = dense_fixed(m) axis j = sparse_variable(i, n)'))
const compiledOf = async (text: string) => (await load(text)).kernel().compile(device)
const fixed = await compiledOf(sums('axis i = dense_fixed(m) axis j = sparse_fixed(i, n, 2)'))
const filled = await compiledOf(sums('axis i = dense_fixed(m) axis j = sparse_fixed(i, n, 2)', ' fill 7'))
const single = await compiledOf(sums('axis i = dense_fixed(m) axis j = singleton(i, n)'))
const as = (format: string, ...args: number[]) =>
  csr
    .kernel()
    .as('A', format, ...args)
    .compile(device)
const [bsr, ell] = [await as('bsr', 2), await as('ell', 2)]

type Compiled = typeof fixed
const bind = (to: Compiled, A: Tensor, m: number, n: number) => to.bind({ params: { m, n }, tensors: { A } })
const refused = (to: Compiled, A: Tensor, m: number, n: number) => refusal(() => bind(to, A, m, n))

const wide = (values: number[]) =>
  stored([1, 2, 2, 2], { jo: { indptr: ints(0, 1), indices: ints(1) } }, Float32Array.from(values))

test('blocks that reach beyond the tensor', () => {
  expect(refused(bsr, wide([1, 2, 3, 4]), 2, 3)).toMatchObject({
    code: 'bind/padding-values',
    message:
      'the value at position 1 of A is 2, and the position stores no element: (i, j) = (0, 3) is outside of the shape [2, 3]',
    expected: '0, the fill value',
    hint: 'set values[1] = 0',
  })
  expect(refused(bsr, wide([1, 0, 3, 0]), 1, 3).message).toContain('(i, j) = (1, 2)')
  expect(bind(bsr, wide([1, 0, 3, 0]), 2, 3).report()[0]!.stored).toBe(2)
})

test('padding of declared axes, with another fill value, and as new values', async () => {
  const at = { j: { indices: ints(0, 3, 1, 4) } }
  const A = (last: number) => stored([2, 4], at, Float32Array.of(1, 2, 3, last))
  expect(refused(fixed, A(9), 2, 4).message).toContain('the value at position 3 of A is 9')
  expect(refused(filled, A(0), 2, 4)).toMatchObject({
    expected: '7, the fill value',
    hint: 'set values[3] = 7',
  })
  bind(filled, A(7), 2, 4)
  expect(
    refused(single, stored([2, 4], { j: { indices: ints(4, 0) } }, Float32Array.of(1, 2)), 2, 4),
  ).toMatchObject({
    code: 'bind/padding-values',
    message:
      'the value at position 0 of A is 1, and the position stores no element: (i, j) = (0, 4) is outside of the shape [2, 4]',
  })
  const prepared = await fixed.prepare({ params: { m: 2, n: 4 }, tensors: { A: A(0) } })
  await expect(prepared.write('A', Float32Array.of(1, 2, 3, 9))).rejects.toThrow('position 3 of A')
  await prepared.write('A', Float32Array.of(4, 5, 6, 0))
  await prepared.run()
  expect([...(await prepared.read('y')).values!]).toEqual([9, 6])
  prepared.free()
})

const matrix = fc
  .record({ m: fc.integer({ min: 1, max: 5 }), n: fc.integer({ min: 2, max: 5 }) })
  .chain(({ m, n }) =>
    fc.record({
      m: fc.constant(m),
      n: fc.constant(n),
      rows: fc.array(fc.uniqueArray(fc.nat({ max: n - 1 }), { maxLength: 2 }), {
        minLength: m,
        maxLength: m,
      }),
      position: fc.nat(),
    }),
  )

property.prop([matrix, fc.constantFrom('bsr', 'ell', 'fixed')], { numRuns: runs(40) })(
  'a value is an element of the tensor, or rejected',
  async ({ m, n, rows, position }, kind) => {
    const sorted = rows.map((r) => r.toSorted((a, b) => a - b))
    const entry = (indices: number[], blocks: number) => {
      const values = new Float32Array(blocks)
      if (blocks > 0) values[position % blocks] = 5
      return { indices: Int32Array.from(indices), values }
    }
    const check = (to: Compiled, A: Tensor, isElement: boolean): void => {
      if (!isElement) expect(refused(to, A, m, n).code).toBe('bind/padding-values')
      else expect(bind(to, A, m, n).sources()[0]!.tensor!.values).toContain(5)
    }
    if (kind !== 'bsr') {
      const padded = sorted.flatMap((r) => [...r, n, n].slice(0, 2))
      const { indices, values } = entry(padded, 2 * m)
      const axis = kind === 'ell' ? 'jo' : 'j'
      check(
        kind === 'ell' ? ell : fixed,
        stored([m, n], { [axis]: { indices } }, values),
        padded[position % (2 * m)]! < n,
      )
      return
    }
    const indptr = [0]
    const blocks: [number, number][] = []
    for (let io = 0; io < Math.ceil(m / 2); io++) {
      const here = new Set([...(sorted[2 * io] ?? []), ...(sorted[2 * io + 1] ?? [])].map((j) => j >> 1))
      for (const jo of [...here].sort()) blocks.push([io, jo])
      indptr.push(blocks.length)
    }
    if (blocks.length === 0) return
    const { indices, values } = entry(
      blocks.map((b) => b[1]),
      4 * blocks.length,
    )
    const p = position % values.length
    const [io, jo] = blocks[p >> 2]!
    const isElement = 2 * io + ((p >> 1) & 1) < m && 2 * jo + (p & 1) < n
    const shape = [Math.ceil(m / 2), Math.ceil(n / 2), 2, 2]
    check(bsr, stored(shape, { jo: { indptr: Int32Array.from(indptr), indices } }, values), isElement)
    const parts = [
      { tensor: stored(shape, { jo: { indptr: Int32Array.from(indptr), indices } }, values), tables: {} },
    ]
    const made = () => csr.format('bsr', 2).fromParts([m, n], parts)
    if (isElement) expect(made().toCoords().values).toHaveLength(1)
    else expect(refusal(made).code).toBe('bind/padding-values')
  },
)

property.prop(
  [matrix, fc.constantFrom('bsr(2)', 'ell(2)', 'ell_at(0, 2)', 'sell(2, 1)', 'dia', 'by_length', 'dcsr')],
  {
    numRuns: runs(40),
  },
)('arrays that a conversion made are accepted', ({ m, n, rows }, text) => {
  const at = rows.flatMap((r, i) => r.map((j) => [i, j] as const))
  const A = coords(
    [m, n],
    [at.map(([i]) => i), at.map(([, j]) => j)],
    Float32Array.from(at, (_, e) => e + 1),
  )
  const format = csr.format(text)
  const { parts } = format.convert(A)
  expect(format.fromParts([m, n], parts).toCoords().values).toHaveLength(at.length)
})
