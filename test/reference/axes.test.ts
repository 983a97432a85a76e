/** Hand-computed cases, one axis kind or access rule each. */
import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { add, constant, int, lt, mul, select } from '../../src/ir/expressions/expr.ts'
import type { Monoid } from '../../src/ir/values/monoid.ts'
import { reference } from '../../src/reference/index.ts'
import { isDense, type Level } from '../../src/reference/tensors/axis-trees.ts'
import { assign, at, buffer, dense, ell, iterate, kernel, ragged, reduce, size, sparse, v } from './build.ts'

// [[1, 0, 2], [0, 0, 0], [0, 3, 0], [4, 5, 6]]
const COORDS = [
  [3, 0, 2, 3, 0, 3],
  [2, 0, 1, 0, 2, 1],
]
const VALUES = [6, 1, 3, 4, 2, 5]
const A = { coords: COORDS, values: VALUES }
const x = [1, 10, 100]
const Ax = [201, 0, 30, 654]

const m = v('m')
const n = v('n')
const sizes = { m: 4, n: 3 }

/** y = A x where A is over `axes`. */
const matvec = (axes: Parameters<typeof kernel>[1], iters: string, kinds: string, row = 'i') =>
  kernel(
    [size('m'), size('n')],
    [dense('r', m), dense('c', n), ...axes],
    [buffer('A', ['i', 'j'], 'in'), buffer('x', ['c'], 'in'), buffer('y', ['r'], 'out')],
    [iterate(iters, kinds, [reduce(at('y', [row]), '+', mul(at('A', ['i', 'j']), at('x', ['j'])))])],
  )
const run = (k: ReturnType<typeof kernel>, more: Record<string, unknown> = {}) =>
  reference(k, { params: sizes, buffers: { A, x, ...more } as never })
const y = (k: ReturnType<typeof kernel>) => [...run(k).buffers.y!.values]

describe('axis kinds', () => {
  test('a compressed child of a dense root', () => {
    expect(y(matvec([dense('i', m), sparse('j', 'i', n)], 'i, j', 'SR'))).toEqual(Ax)
  })
  test('compressed over compressed', () => {
    expect(y(matvec([sparse('i', null, m), sparse('j', 'i', n)], 'i, j', 'SR'))).toEqual(Ax)
  })
  test('every entry has its own root node', () => {
    const axes = [sparse('i', null, m, { unique: false }), sparse('j', 'i', n)]
    const k = matvec(axes, 'i, j', 'RR')
    expect(y(k)).toEqual(Ax)
    const twice = {
      coords: [
        [0, 0],
        [2, 2],
      ],
      values: [1, 2],
    } // prettier-ignore
    const count = kernel(
      [size('m'), size('n')],
      [...axes],
      [buffer('A', ['i', 'j'], 'in'), buffer('c', [], 'out')],
      [iterate('i, j', 'RR', [reduce(at('c', []), '+', constant(1, 'f32'))])],
    )
    const visits = (duplicates: 'sum' | 'keep') =>
      reference(count, { params: sizes, buffers: { A: { ...twice, duplicates } } }).buffers.c!.values[0]
    expect(visits('sum')).toBe(1)
    expect(visits('keep')).toBe(2)
  })
  test('a fixed number per row, without visits of padding', () => {
    expect(y(matvec([dense('i', m), ell('j', 'i', n, int(3))], 'i, j', 'SR'))).toEqual(Ax)
    expect(() => y(matvec([dense('i', m), ell('j', 'i', n, int(2))], 'i, j', 'SR'))).toThrow(
      'reference/width',
    )
  })
  test('ragged rows are as long as their last coordinate', () => {
    const k = kernel(
      [size('m'), size('n')],
      [dense('i', m), ragged('j', 'i', n)],
      [buffer('A', ['i', 'j'], 'in'), buffer('B', ['i', 'j'], 'out')],
      [iterate('i, j', 'SS', [assign(at('B', ['i', 'j']), add(at('A', ['i', 'j']), constant(1, 'f32')))])],
    )
    const out = reference(k, {
      params: sizes,
      buffers: {
        A: {
          coords: [
            [0, 0, 2],
            [1, 3 - 1, 0],
          ],
          values: [5, 6, 7],
        },
      },
    }) // prettier-ignore
    expect(out.buffers.B).toMatchObject({
      kind: 'sparse',
      shape: [4, 3],
      coords: [Int32Array.of(0, 0, 0, 2), Int32Array.of(0, 1, 2, 0)],
      values: Float64Array.of(1, 6, 7, 8),
    })
  })
  test('fused members keep their names', () => {
    const axes = [
      dense('i', m),
      sparse('j', 'i', n),
      { kind: 'fused', name: 'ij', members: ['i', 'j'] } as const,
    ]
    expect(y(matvec(axes, 'ij', 'R'))).toEqual(Ax)
  })
  test('attached: entered by a coordinate', () => {
    // two hops: y[i] = Σ_j A[i,j] Σ_k A[j,k], where row j of A is entered by the coordinate j
    const k = kernel(
      [size('m')],
      [dense('i', m), sparse('j', 'i', m), { kind: 'attached', name: 'k', base: 'j', parent: 'j' }],
      [buffer('A', ['i', 'j'], 'in'), buffer('y', ['i'], 'out')],
      [
        iterate('i, j, k', 'SRR', [
          reduce(at('y', ['i']), '+', mul(at('A', ['i', 'j']), at('A', ['j', 'k']))),
        ]),
      ],
    )
    const out = reference(k, { params: { m: 4 }, buffers: { A } })
    // row sums: 3, 0, 3, 15
    expect([...out.buffers.y!.values]).toEqual([1 * 3 + 2 * 3, 0, 0, 4 * 3 + 0 + 6 * 3])
  })
  test('gathered: listed coordinates, without those out of range', () => {
    const k = kernel(
      [size('m'), size('l')],
      [dense('i', m), dense('l0', v('l')), { kind: 'gathered', name: 'g', base: 'i', buffer: 'L' }],
      [buffer('L', ['l0'], 'in', 'i32'), buffer('x', ['i'], 'in'), buffer('y', ['i'], 'out')],
      [iterate('g', 'R', [reduce(at('y', ['g']), '+', at('x', ['g']))])],
    )
    const out = reference(k, { params: { m: 3, l: 4 }, buffers: { L: [2, 0, 7, 2], x: [1, 10, 100] } })
    expect([...out.buffers.y!.values]).toEqual([1, 0, 200])
  })
})

describe('accesses', () => {
  test('absent and out-of-range coordinates read the fill value', () => {
    const k = kernel(
      [size('m'), size('n')],
      [dense('i', m), sparse('j', 'i', n), dense('c', n)],
      [buffer('A', ['i', 'j'], 'in', 'f32', -1), buffer('B', ['i', 'c'], 'out')],
      [iterate('i, c', 'SS', [assign(at('B', ['i', 'c']), at('A', ['i', add(v('c'), int(1))]))])],
    )
    const out = reference(k, { params: sizes, buffers: { A } })
    expect([...out.buffers.B!.values]).toEqual([-1, 2, -1, -1, -1, -1, 3, -1, -1, 5, 6, -1])
  })
  test('the same axis twice: an element is at its own indices', () => {
    // y[i] = Σ over rows p and their columns j of A[i, j]: j belongs to p, not to i
    const k = kernel(
      [size('m'), size('n')],
      [dense('i', m), sparse('j', 'i', n)],
      [buffer('A', ['i', 'j'], 'in'), buffer('y', ['i'], 'out')],
      [iterate('i, p in i, j', 'SRR', [reduce(at('y', ['i']), '+', at('A', ['i', 'j']))])],
    )
    const times = [2, 2, 2]
    const rows = [
      [1, 0, 2],
      [0, 0, 0],
      [0, 3, 0],
      [4, 5, 6],
    ] // prettier-ignore
    const expected = rows.map((r) => r.reduce((s, c, j) => s + c * times[j]!, 0))
    expect([...reference(k, { params: sizes, buffers: { A } }).buffers.y!.values]).toEqual(expected)
  })
  test('indirect indices', () => {
    const k = kernel(
      [size('m')],
      [dense('i', m), dense('p', m)],
      [buffer('E', ['i'], 'in', 'i32'), buffer('W', ['p'], 'in'), buffer('y', ['i'], 'out')],
      [iterate('i', 'S', [assign(at('y', ['i']), at('W', [at('E', ['i'], 'i32')]))])],
    )
    const out = reference(k, { params: { m: 3 }, buffers: { E: [2, 0, 9], W: [1, 2, 3] } })
    expect([...out.buffers.y!.values]).toEqual([3, 1, 0])
  })
  test('writing an absent coordinate is an error', () => {
    const k = kernel(
      [size('m'), size('n')],
      [dense('i', m), sparse('j', 'i', n), dense('c', n)],
      [buffer('A', ['i', 'j'], 'inout')],
      [iterate('i, c', 'SS', [assign(at('A', ['i', 'c']), constant(1, 'f32'))])],
    )
    expect(() => reference(k, { params: sizes, buffers: { A } })).toThrow(SptError)
    expect(() => reference(k, { params: sizes, buffers: { A } })).toThrow('A[0, 1] is written')
  })
  test('an element of a nonunique axis is found among all nodes of its coordinate', () => {
    const k = kernel(
      [size('m'), size('n')],
      [sparse('i', null, m, { unique: false }), sparse('j', 'i', n), dense('r', m), dense('c', n)],
      [buffer('A', ['i', 'j'], 'in'), buffer('B', ['r', 'c'], 'out')],
      [iterate('r, c', 'SS', [assign(at('B', ['r', 'c']), at('A', ['r', 'c']))])],
    )
    const out = reference(k, { params: sizes, buffers: { A } })
    expect([...out.buffers.B!.values]).toEqual([1, 0, 2, 0, 0, 0, 0, 3, 0, 4, 5, 6])
  })
})

describe('pieces', () => {
  const pieces = (width: number) => [sparse('i', null, m, { unique: false }), ell('j', 'i', n, int(width))]
  test('positions of a nonunique axis take as many coordinates as fit', () => {
    for (const width of [1, 2, 3]) expect(y(matvec(pieces(width), 'i, j', 'RR'))).toEqual(Ax)
  })
  test('a row of three elements has two pieces of two', () => {
    const k = kernel(
      [size('m'), size('n')],
      [...pieces(2), dense('r', m)],
      [buffer('A', ['i', 'j'], 'in'), buffer('y', ['r'], 'out')],
      [iterate('i', 'R', [reduce(at('y', ['i']), '+', constant(1, 'f32'))])],
    )
    expect([...reference(k, { params: sizes, buffers: { A } }).buffers.y!.values]).toEqual([1, 0, 1, 2])
  })
})

describe('statements', () => {
  test('outputs start at the identity of a reduction that comes first, at the fill value otherwise', () => {
    const axes = [dense('i', m), sparse('j', 'i', n)]
    const k = kernel(
      [size('m'), size('n')],
      axes,
      [buffer('A', ['i', 'j'], 'in'), buffer('y', ['i'], 'out'), buffer('z', ['i'], 'out', 'f32', 7)],
      [
        iterate('i, j', 'SR', [reduce(at('y', ['i']), 'max', at('A', ['i', 'j']))]),
        iterate('i', 'S', [
          { kind: 'if', cond: lt(v('i'), int(2)), then: [assign(at('z', ['i']), at('y', ['i']))], else: [] },
        ]),
      ],
    )
    const out = reference(k, { params: sizes, buffers: { A } })
    expect([...out.buffers.y!.values]).toEqual([2, -Infinity, 3, 6])
    expect([...out.buffers.z!.values]).toEqual([2, -Infinity, 7, 7])
  })
  test('nested iterations, lets, where and locals', () => {
    const k = kernel(
      [size('m'), size('n')],
      [dense('i', m), sparse('j', 'i', n)],
      [buffer('A', ['i', 'j'], 'in'), buffer('t', ['i'], 'local'), buffer('y', ['i'], 'out')],
      [
        iterate('i', 'S', [
          iterate('j', 'R', [reduce(at('t', ['i']), '+', at('A', ['i', 'j']))], [lt(v('j'), int(2))]),
          { kind: 'let', name: 'twice', value: add(at('t', ['i']), at('t', ['i'])) },
          assign(at('y', ['i']), v('twice', 'f32')),
        ]),
      ],
    )
    expect([...reference(k, { params: sizes, buffers: { A } }).buffers.y!.values]).toEqual([2, 0, 6, 18])
  })
  test('tuple monoids combine all components at once', () => {
    const f = (name: string) => v(name, 'f32') as Extract<ReturnType<typeof v>, { kind: 'var' }>
    const better = lt(f('av'), f('bv'))
    const argmax: Monoid = {
      name: 'argmax',
      fields: [
        { name: 'v', dtype: 'f32' },
        { name: 'at', dtype: 'i32' },
      ],
      identity: [constant(-Infinity, 'f32'), int(-1)],
      left: [f('av'), v('aat') as ReturnType<typeof f>],
      right: [f('bv'), v('bat') as ReturnType<typeof f>],
      result: [select(better, f('bv'), f('av')), select(better, v('bat'), v('aat'))],
    }
    const k = kernel(
      [size('m'), size('n')],
      [dense('i', m), sparse('j', 'i', n)],
      [buffer('A', ['i', 'j'], 'in'), buffer('v', ['i'], 'out'), buffer('p', ['i'], 'out', 'i32')],
      [
        iterate('i, j', 'SR', [
          {
            kind: 'reduce',
            reducer: argmax,
            targets: [at('v', ['i']), at('p', ['i'], 'i32')],
            values: [at('A', ['i', 'j']), v('j')],
          },
        ]),
      ],
    ) // prettier-ignore
    const out = reference(k, { params: sizes, buffers: { A } })
    expect([...out.buffers.v!.values]).toEqual([2, -Infinity, 3, 6])
    expect([...out.buffers.p!.values]).toEqual([2, -1, 1, 2])
  })
  test('integers are exact modulo their type', () => {
    const k = kernel(
      [size('m')],
      [dense('i', m)],
      [buffer('a', ['i'], 'in', 'i32'), buffer('p', [], 'out', 'i32'), buffer('b', ['i'], 'out', 'i8')],
      [
        iterate('i', 'R', [reduce(at('p', [], 'i32'), '*', at('a', ['i'], 'i32'))]),
        iterate('i', 'S', [assign(at('b', ['i'], 'i8'), at('a', ['i'], 'i32'))]),
      ],
    )
    const a = [2147483647, 123456789, -7]
    const out = reference(k, { params: { m: 3 }, buffers: { a } })
    const exact = BigInt.asIntN(
      32,
      a.map(BigInt).reduce((p, q) => p * q),
    )
    expect(BigInt(out.buffers.p!.values[0]!)).toBe(exact)
    expect([...out.buffers.b!.values]).toEqual(a.map((c) => Number(BigInt.asIntN(8, BigInt(c)))))
  })
})

describe('samples', () => {
  const rows = 50
  const big = matvec([dense('i', m), sparse('j', 'i', n)], 'i, j', 'SR')
  const entries = Array.from({ length: 120 }, (_, e) => [(e * 7) % rows, (e * 5) % 3, e] as const)
  const input = {
    params: { m: rows, n: 3 },
    buffers: {
      A: { coords: [entries.map((e) => e[0]), entries.map((e) => e[1])], values: entries.map((e) => e[2]) },
      x,
    },
  } // prettier-ignore
  test('sampled coordinates agree with the full result', () => {
    const whole = reference(big, input).buffers.y!.values
    for (const seed of [1, 2, 3]) {
      const out = reference(big, input, { sample: { count: 9, seed } })
      expect(out.sampled).toMatchObject({ axis: 'i', dims: { y: 0 } })
      expect(out.sampled!.coordinates.length).toBe(9)
      for (const c of out.sampled!.coordinates) expect(out.buffers.y!.values[c]).toBe(whole[c])
      expect(out.buffers.y!.values.filter((q) => q !== 0).length).toBeLessThanOrEqual(9)
    }
  })
  test('values that a sampled coordinate reads from others are computed', () => {
    const m = v('m')
    const mirrored = kernel(
      [size('m')],
      [dense('i', m), sparse('j', 'i', m)],
      [buffer('A', ['i', 'j'], 'in'), buffer('y', ['i'], 'out')],
      [iterate('i, j', 'SR', [reduce(at('y', ['i']), '+', mul(at('A', ['i', 'j']), at('A', ['j', 'i'])))])],
    )
    const side = 12
    const all = Array.from({ length: side * side }, (_, e) => e)
    const A = { coords: [all.map((e) => Math.floor(e / side)), all.map((e) => e % side)], values: all }
    const values = { params: { m: side }, buffers: { A } }
    const whole = reference(mirrored, values).buffers.y!.values
    const part = reference(mirrored, values, { sample: { count: 3, seed: 2 } })
    expect(part.sampled!.coordinates).toHaveLength(3)
    for (const c of part.sampled!.coordinates) expect(part.buffers.y!.values[c]).toBe(whole[c])
  })
  test('mutually dependent coordinates are never sampled', () => {
    const shifted = (back: number) =>
      kernel(
        [size('m')],
        [dense('i', m)],
        [buffer('x', ['i'], 'in'), buffer('t', ['i'], 'local'), buffer('y', ['i'], 'out')],
        [
          iterate('i', 'S', [assign(at('t', ['i']), at('x', ['i']))]),
          iterate('i', 'S', [assign(at('y', ['i']), at('t', [back === 0 ? 'i' : add(v('i'), int(-back))]))]),
        ],
      )
    const values = { params: { m: 9 }, buffers: { x: [1, 2, 3, 4, 5, 6, 7, 8, 9] } }
    const sample = { count: 2, seed: 3 }
    expect(reference(shifted(0), values, { sample }).sampled?.coordinates).toHaveLength(2)
    const whole = reference(shifted(1), values, { sample })
    expect(whole.sampled).toBeNull()
    expect([...whole.buffers.y!.values]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
  })
  test('a scalar output is never sampled', () => {
    const total = kernel(
      [size('m'), size('n')],
      [dense('i', m), sparse('j', 'i', n)],
      [buffer('A', ['i', 'j'], 'in'), buffer('s', [], 'out')],
      [iterate('i, j', 'RR', [reduce(at('s', []), '+', at('A', ['i', 'j']))])],
    )
    const out = reference(total, input, { sample: { count: 1, seed: 1 } })
    expect(out.sampled).toBeNull()
    expect(out.buffers.s!.values[0]).toBe((119 * 120) / 2)
  })
})

test('a level below stored coordinates is not dense', () => {
  const level = (axis: unknown, parent: Level | null): Level => ({
    axis: axis as StoredAxis,
    parent,
    extent: 1,
    count: 1,
    start: null,
    coord: null,
  })
  const listed = level(sparse('i', null, m), null)
  expect(isDense(listed)).toBe(false)
  expect(isDense(level(dense('j', n), null))).toBe(true)
  expect(isDense(level(dense('j', n), level(dense('i', m), null)))).toBe(true)
  expect(isDense(level(dense('j', n), listed))).toBe(false)
})
