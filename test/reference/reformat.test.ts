/** Kernels over other formats take and give the caller's coordinates. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Axis, StoredAxis } from '../../src/ir/coordinates/axis.ts'
import type { Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import type { Expr } from '../../src/ir/expressions/expr.ts'
import { add, ceildiv, constant, div, int, lt, mod, mul, sub } from '../../src/ir/expressions/expr.ts'
import type { Format, Instance } from '../../src/ir/formats/format.ts'
import { reference } from '../../src/reference/index.ts'
import { verify1 } from '../../src/verifiers/stage1.ts'
import { kernelOf, read } from '../elaborate/support.ts'
import { assign, at, dense, iterate, reduce, sparse, v } from './build.ts'

const csr = kernelOf(`
  kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis c = dense_fixed(n)
    buffer A: i32[i, j] in
    buffer x: i32[c] in
    buffer y: i32[i] out
    buffer D: i32[i, j] out
    iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] }
    iterate scale [i, j] as SS { D[i, j] = A[i, j] * x[j] }
  }`)

/** The same over blocks of b × b, as a schedule would rewrite it. */
function blocked(b: number): Kernel1 {
  const B = int(b)
  const [i, j] = ['i', 'j'].map((n) => csr.axes.find((a) => a.name === n)!) as [StoredAxis, StoredAxis]
  const to: Axis[] = [
    dense('io', ceildiv(v('m'), B)),
    sparse('jo', 'io', ceildiv(v('n'), B)),
    dense('ii', B),
    dense('ji', B),
  ]
  const row = add(mul(v('io'), B), v('ii'))
  const col = add(mul(v('jo'), B), v('ji'))
  const where = [lt(row, v('m')), lt(col, v('n'))]
  const over = ['io', 'jo', 'ii', 'ji']
  const product = mul(at('A', over, 'i32'), at('x', [col], 'i32'))
  return {
    ...csr,
    axes: [...csr.axes, ...to],
    buffers: csr.buffers.map((buffer) => ('AD'.includes(buffer.name) ? { ...buffer, axes: over } : buffer)),
    body: [
      iterate('io, jo, ii, ji', 'SRSR', [reduce(at('y', [row], 'i32'), '+', product)], where),
      iterate(
        'io, jo, ii, ji',
        'SSSS',
        [{ kind: 'assign', targets: [at('D', over, 'i32')], values: [product] }],
        where,
      ),
    ],
    reformats: [
      {
        format: `bsr(${b})`,
        from: [i, j],
        instance: one(over, [div(v('i'), B), div(v('j'), B), mod(v('i'), B), mod(v('j'), B)], [row, col]),
        buffers: ['A', 'D'].map((name) => ({ name, axes: ['i', 'j'], parts: [name] })),
      },
    ],
  }
}

const one = (order: readonly string[], map: readonly Expr[], inverse: readonly Expr[]): Instance => ({
  text: '',
  over: [],
  tree: { kind: 'leaf', part: 0 },
  parts: [
    {
      label: '',
      instance: {
        text: '',
        constants: new Map(),
        axes: [],
        order,
        names: new Map(),
        arrayNames: new Map(),
        sorts: [],
        lists: [],
        queries: [],
        map,
        inverse,
        where: null,
        tables: [],
        claims: [],
        measured: [],
      },
    },
  ],
  given: [],
})

test('a block format gives the same result in the same coordinates', () => {
  const matrices = fc
    .record({ m: fc.nat(7), n: fc.nat(7), b: fc.integer({ min: 1, max: 4 }) })
    .chain(({ m, n, b }) => {
      const cell =
        m * n === 0 ? fc.constant<number[]>([]) : fc.uniqueArray(fc.nat(m * n - 1), { maxLength: 12 })
      const numbers = fc.array(fc.integer({ min: -9, max: 9 }), { minLength: n, maxLength: n })
      return fc.record({ m: fc.constant(m), n: fc.constant(n), b: fc.constant(b), cells: cell, x: numbers })
    })
  fc.assert(
    fc.property(matrices, ({ m, n, b, cells, x }) => {
      const A = {
        coords: [cells.map((e) => Math.floor(e / n)), cells.map((e) => e % n)],
        values: cells.map((e) => (e % 5) + 1),
      }
      const inputs = { params: { m, n }, buffers: { A, x } }
      const kernel = blocked(b)
      verify1(kernel)
      expect(reference(kernel, inputs)).toEqual(reference(csr, inputs))
    }),
  )
})

test('padding of a dense buffer stays out of the result', () => {
  const plain = kernelOf(`kernel k(m: size, n: size) {
    axis r = dense_fixed(n)
    axis i = dense_fixed(m)
    buffer x: i32[r, i] in
    buffer y: i32[r, i] out
    iterate it [r, i] as SS { y[r, i] = x[r, i] + 1 }
  }`)
  // Rows in tiles of four, from the end: padding has negative coordinates.
  const last = sub(v('m'), int(1))
  const fromEnd = sub(last, v('i'))
  const over = ['r', 'io', 'ii']
  const tiled: Kernel1 = {
    ...plain,
    axes: [...plain.axes, dense('io', ceildiv(v('m'), int(4))), dense('ii', int(4))],
    buffers: plain.buffers.map((b) => ({ ...b, axes: over })),
    body: [
      iterate('r, io, ii', 'SSS', [
        assign(at('y', over, 'i32'), add(at('x', over, 'i32'), constant(1, 'i32'))),
      ]),
    ],
    reformats: [
      {
        format: 'tiles(4)',
        from: [plain.axes[1]!],
        instance: one(
          ['io', 'ii'],
          [div(fromEnd, int(4)), mod(fromEnd, int(4))],
          [sub(last, add(mul(v('io'), int(4)), v('ii')))],
        ),
        buffers: ['x', 'y'].map((name) => ({ name, axes: ['r', 'i'], parts: [name] })),
      },
    ],
  }
  verify1(tiled)
  const inputs = { params: { m: 3, n: 2 }, buffers: { x: [1, 2, 3, 4, 5, 6] } }
  expect(reference(tiled, inputs)).toEqual(reference(plain, inputs))
})

test('a format is elaborated with the names it declares', () => {
  const format = read(`format bsr(b, w: size, c = 2 * b) over (i, j) {
    axis jo = sparse_fixed(io, ceildiv(j, b), w)
    axis io = dense_fixed(ceildiv(i, b))
    axis ii = dense_fixed(b)
    axis ji = dense_fixed(b)
    map (r, s) -> (s / b, r / b, r % b, s % b)
    inverse (jo, io, p, q) -> (io * b + p, jo * b + q)
  }`).formats.get('bsr') as Format
  expect(format.axes.map((a) => a.name)).toEqual(['io', 'jo', 'ii', 'ji'])
  expect(format.order).toEqual(['jo', 'io', 'ii', 'ji'])
  expect(format.params.map((p) => [p.name, p.measured, p.default !== null])).toEqual([
    ['b', false, false],
    ['w', true, false],
    ['c', false, true],
  ])
  expect(format.map[0]).toMatchObject({ op: 'div', a: { name: 'j' }, b: { name: 'b' } })
  expect(format.inverse[1]).toMatchObject({ op: 'add', b: { kind: 'var', name: 'ji' } })
})
