/** Dimensions that may be permuted, of kernels as users write them; and data that show why others may not. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { PermutableDimension } from '../../src/analysis/permutations/permutable-dimensions.ts'
import { permutableDimensions } from '../../src/analysis/permutations/permutable-dimensions.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { isDenseChain, isNonunique, isStored } from '../../src/ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { load } from '../../src/node.ts'
import { type RefInputs, type RefTensor, reference } from '../../src/reference/index.ts'
import { runs } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { entries } from '../support/matrix-gen.ts'
import { permutedInputs, permutedResults, plainResults } from '../support/permuted-data.ts'

const SIZES = { a: 4, b: 3, c: 5 }

/** Axes and buffers of a kernel over sizes a, b and c. */
const kernelOf = (axes: string, buffers: string, body: string, before = ''): Kernel1 =>
  parseProgram(`${before}
kernel k(a: size, b: size, c: size) {
${axes
  .split('; ')
  .flatMap((x) => (x.includes('=') ? [x] : x.split(', ').map((d) => `${d.replace(':', ' = dense_fixed(')})`)))
  .map((x) => `  axis ${x}`)
  .join('\n')}
${buffers
  .split('; ')
  .map((b) => `  buffer ${b}`)
  .join('\n')}
${body}
}`).kernel().source

const ARGMAX = `monoid first(v: i32, at: i32) {
  identity (-2147483647 - 1, 2147483647)
  combine (x, y) = (max(x.v, y.v), select(x.v > y.v, x.at, select(y.v > x.v, y.at, min(x.at, y.at))))
}`

/** Each with the dimensions that may be permuted; of others a part of the reason. */
const CASES: Readonly<Record<string, readonly [Kernel1, Readonly<Record<string, true | string>>]>> = {
  elementwise: [
    kernelOf(
      'i:a, j:b',
      'A: i32[i, j] in; B: i32[i, j] in; C: i32[i, j] out',
      'iterate e [i, j] as SS { C[i, j] = A[i, j] * B[i, j] }',
    ),
    { 'A.i': true, 'A.j': true, 'B.i': true, 'B.j': true, 'C.i': true, 'C.j': true },
  ],
  'reduce-sum': [
    kernelOf('i:a, j:b', 'A: i32[i, j] in; C: i32[] out', 'iterate s [i, j] as RR { C[] += A[i, j] }'),
    { 'A.i': true, 'A.j': true },
  ],
  'batched matmul': [
    kernelOf(
      'g:a, m:b, n:c, k:a',
      'A: i32[g, m, k] in; B: i32[g, k, n] in; C: i32[g, m, n] out',
      'iterate p [g, m, n, k] as SSSR { C[g, m, n] += A[g, m, k] * B[g, k, n] }',
    ),
    Object.fromEntries(['A.g', 'A.m', 'A.k', 'B.g', 'B.k', 'B.n', 'C.g', 'C.m', 'C.n'].map((d) => [d, true])),
  ],
  convolution: [
    kernelOf(
      'n:a, m:b, f:c, x:4, i:2, xi:5',
      'A: i32[n, m, xi] in; W: i32[f, m, i] in; Y: i32[n, f, x] out',
      'iterate conv [n, f, x, m, i] as SSSRR { Y[n, f, x] += A[n, m, x + i] * W[f, m, i] }',
    ),
    {
      'A.n': true,
      'A.m': true,
      'W.f': true,
      'W.m': true,
      'Y.n': true,
      'Y.f': true,
      'A.xi': 'x + i',
      'W.i': 'computes with the coordinate i',
      'Y.x': 'computes with the coordinate x',
    },
  ],
  'causal mask': [
    kernelOf(
      'i:a, j:a, k:b',
      'Q: i32[i, k] in; K: i32[j, k] in; S: i32[i, j] out',
      'iterate s [i, j, k] as SSR { if (j <= i) { S[i, j] += Q[i, k] * K[j, k] } }',
    ),
    {
      'Q.k': true,
      'K.k': true,
      'Q.i': 'the condition j <= i',
      'K.j': 'the condition j <= i',
      'S.i': 'the condition',
      'S.j': 'the condition',
    },
  ],
  where: [
    kernelOf(
      'i:a, j:a',
      'A: i32[i, j] in; C: i32[i] out',
      'iterate s [i, j] as SR where (i <= j) { C[i] += A[i, j] }',
    ),
    { 'A.i': 'the condition i <= j', 'A.j': 'the condition i <= j', 'C.i': 'the condition' },
  ],
  'a coordinate as a value': [
    kernelOf(
      'i:a, j:b',
      'A: f32[i, j] in; C: f32[j] out',
      'iterate s [i, j] as RS { C[j] += A[i, j] * f32(i) }',
    ),
    { 'A.j': true, 'C.j': true, 'A.i': 'f32(i) computes with the coordinate i' },
  ],
  'a coordinate by a let': [
    kernelOf(
      'i:a, j:b',
      'A: i32[i, j] in; C: i32[j] out',
      'iterate s [i, j] as RS {\n let t = i * 2\n let at = j\n C[at] += A[i, j] * t }',
    ),
    { 'A.j': true, 'C.j': true, 'A.i': 'i * 2 computes with the coordinate i' },
  ],
  diagonal: [
    kernelOf('i:a, j:a', 'A: i32[i, j] in; C: i32[i] out', 'iterate s [i] as S { C[i] = A[i, i] }'),
    { 'A.i': 'j of A would have to be permuted with it', 'A.j': 'i of A would have', 'C.i': true },
  ],
  'gram matrix': [
    kernelOf(
      'i:a, j:a, k:b',
      'A: i32[i, k] in; C: i32[i, j] out',
      'iterate s [i, j, k] as SSR { C[i, j] += A[i, k] * A[j, k] }',
    ),
    { 'A.i': true, 'A.k': true, 'C.i': 'j of C would have', 'C.j': 'i of C would have' },
  ],
  'first of the greatest': [
    kernelOf(
      'i:a, j:b',
      'A: i32[i, j] in; V: i32[i] out; P: i32[i] out',
      'iterate s [i, j] as SR { (V[i], P[i]) first= (A[i, j], j) }',
      ARGMAX,
    ),
    { 'A.i': true, 'V.i': true, 'P.i': true, 'A.j': 'the coordinate j is a value' },
  ],
  transposed: [
    kernelOf('i:a, j:b', 'A: i32[i, j] in; C: i32[j, i] out', 'iterate s [i, j] as SS { C[j, i] = A[i, j] }'),
    { 'A.i': true, 'A.j': true, 'C.i': true, 'C.j': true },
  ],
  'other extents': [
    kernelOf('i:3, j:4', 'A: i32[j] in; C: i32[i] out', 'iterate s [i] as S { C[i] = A[i] }'),
    { 'A.j': 'i has 3 coordinates, and j of A has 4', 'C.i': 'i has 3 coordinates' },
  ],
  'one coordinate': [
    kernelOf('i:a, j:b', 'A: i32[i, j] in; C: i32[j] out', 'iterate s [j] as S { C[j] = A[1, j] }'),
    { 'A.i': 'A is indexed by 1', 'A.j': true, 'C.j': true },
  ],
  indirect: [
    kernelOf(
      'i:a, j:a',
      'P: i32[i] in; X: i32[j] in; C: i32[i] out',
      'iterate s [i] as S { C[i] = X[P[i]] }',
    ),
    { 'P.i': true, 'C.i': true, 'X.j': 'X is indexed by P[i]' },
  ],
  'equal coordinates': [
    kernelOf(
      'i:a, j:a',
      'A: i32[i, j] in; C: i32[i] out',
      'iterate s [i, j] as SR { if (i != j) { C[i] += A[i, j] } }',
    ),
    { 'A.i': 'j of A would have', 'A.j': 'i of A would have', 'C.i': true },
  ],
}

const SPARSE: typeof CASES = {
  gathered: [
    kernelOf(
      'i:a, p:b; g = gathered(i, L)',
      'L: i32[p] in; X: i32[i] in; C: i32[] out',
      'iterate s [g] as R { C[] += X[g] * X[g] }',
    ),
    { 'L.p': true, 'X.i': 'g runs over the coordinates that L lists' },
  ],
  compressed: [
    kernelOf(
      'i:a; j = sparse_variable(i, c); x:c',
      'A: i32[i, j] in; X: i32[x] in; C: i32[i] out',
      'iterate s [i, j] as SR { C[i] += A[i, j] * X[j] }',
    ),
    { 'A.i': true, 'A.j': true, 'X.x': true, 'C.i': true },
  ],
  ragged: [
    kernelOf(
      'i:a; j = dense_variable(i, c)',
      'A: i32[i, j] in; C: i32[i] out',
      'iterate s [i, j] as SR { C[i] += A[i, j] + 1 }',
    ),
    { 'A.i': true, 'A.j': 'j also stores the coordinates between its elements', 'C.i': true },
  ],
  'pieces of rows': [
    kernelOf(
      'i = sparse_variable(a) nonunique; j = sparse_fixed(i, c, 2)',
      'A: i32[i, j] in; C: i32[i] out',
      'iterate s [i, j] as SR { C[i] += A[i, j] }',
    ),
    { 'A.i': true, 'A.j': 'i is nonunique', 'C.i': true },
  ],
}

const keyOf = (d: PermutableDimension): string => `${d.tensor}.${d.axis}`

describe.each(Object.entries({ ...CASES, ...SPARSE }))('%s', (_, [kernel, want]) => {
  const { kernel: dimensions } = permutableDimensions(kernel)

  test('dimensions that are permutable, and the reason for others', () => {
    const told = dimensions.map((d) => [keyOf(d), d.obstacle?.reason ?? true] as const)
    const expected = Object.entries(want).map(([key, w]) => [
      key,
      w === true ? w : expect.stringContaining(w),
    ])
    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(expected))
  })

  /** Integers, such as have equal ones among them. */
  const dataOf = (c: Choices): { inputs: RefInputs; shapes: Record<string, readonly number[]> } => {
    const extents = new Map(
      kernel.axes.filter(isStored).map((a) => {
        const extent = (a as { extent: { value?: number; name?: keyof typeof SIZES } }).extent
        return [a.name, extent.value ?? SIZES[extent.name!]]
      }),
    )
    const shapes = Object.fromEntries(kernel.buffers.map((b) => [b.name, b.axes.map((a) => extents.get(a)!)]))
    const axes = new Map(kernel.axes.map((x) => [x.name, x]))
    const of = ({ name, axes: own }: Buffer1): RefTensor => {
      const shape = shapes[name]!
      const count = shape.reduce((x, y) => x * y, 1)
      const draw = (n: number) => Array.from({ length: n }, () => c.below(4))
      if (own.every((x) => isDenseChain(axes, x))) return draw(count)
      const { coords, count: stored } = entries(c, shape, false)
      return {
        coords,
        values: draw(stored),
        duplicates: own.some((x) => isNonunique(axes.get(x)!)) ? 'keep' : 'sum',
      }
    }
    const buffers = Object.fromEntries(
      kernel.buffers.flatMap((x) => (x.role === 'in' ? [[x.name, of(x)]] : [])),
    )
    return { inputs: { params: SIZES, buffers }, shapes }
  }

  /** Whether permuted data give the same results, permuted. */
  const same = (d: PermutableDimension, numbers: readonly number[]): boolean => {
    const c = new Choices(numbers)
    const { inputs, shapes } = dataOf(c)
    const extent = shapes[d.tensor]![d.dimension]!
    const order = c.shuffle(Array.from({ length: extent }, (_, k) => k))
    const dims = [d, ...d.linkedDimensions.filter((x) => shapes[x.tensor]![x.dimension] === extent)]
    const before = reference(kernel, inputs).buffers
    const after = reference(kernel, permutedInputs(inputs, shapes, dims, order)).buffers
    return JSON.stringify(plainResults(after)) === JSON.stringify(permutedResults(before, dims, order))
  }

  const numbers = choiceNumbers(200)
  test.each(dimensions.filter((d) => !d.obstacle).map((d) => [keyOf(d), d] as const))('%s may', (_, d) => {
    fc.assert(
      fc.property(numbers, (n) => same(d, n)),
      { numRuns: runs(25) },
    )
  })
  test.each(dimensions.filter((d) => d.obstacle).map((d) => [keyOf(d), d] as const))(
    '%s is not permutable: data with different results',
    (_, d) => {
      const found = fc.check(
        fc.property(numbers, (n) => same(d, n)),
        { numRuns: runs(500), endOnFailure: true },
      )
      expect(found.failed).toBe(true)
    },
  )
})

test('reasons point to source locations', () => {
  const text = `kernel k(a: size) {
  axis i = dense_fixed(a)
  axis j = dense_fixed(a)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate s [i, j] as SR {
    if (i <= j) { C[i] += A[i, j] }
  }
}`
  const [first] = parseProgram(text).kernel().inspect.permutable.kernel
  const { start, end } = first!.obstacle!.span!
  expect(text.slice(start, end)).toBe('i')
  expect(text.slice(start, end + 5)).toBe('i <= j')
})

test.each([
  ['[i] as S', 'C[i] = A[i, i]', 'A[i, i]'],
  ['[i, j] as SR', 'C[i] += A[i, j] * A[j, i]', 'A[j, i]'],
])('%s %s: tied dimensions name the access that ties them', (loops, statement, access) => {
  const text = `kernel k(a: size) {
  axis i = dense_fixed(a)
  axis j = dense_fixed(a)
  buffer A: i32[i, j] in
  buffer C: i32[i] out
  iterate s ${loops} { ${statement} }
}`
  const tied = parseProgram(text)
    .kernel()
    .inspect.permutable.kernel.flatMap(({ tensor, obstacle }) =>
      tensor === 'A' && obstacle?.reason.includes('permuted with it') ? [obstacle.span!] : [],
    )
  expect(tied.length).toBeGreaterThan(0)
  for (const { start, end } of tied) expect(text.slice(start, end)).toBe(access)
})

describe('kernels of several iterations', () => {
  const text = (second: string) => `kernel k(a: size, b: size) {
  axis i = dense_fixed(a)
  axis j = dense_fixed(b)
  buffer A: f32[i, j] in
  buffer T: f32[i, j] local
  buffer C: f32[i] out
  iterate first [i, j] as SS { T[i, j] = A[i, j] + 1.0 }
  iterate second [i, j] as SR { ${second} }
}`
  const of = (second: string): Readonly<Record<string, unknown>> => {
    const { kernel, iterations } = parseProgram(text(second)).kernel().inspect.permutable
    const say = (ds: readonly PermutableDimension[]) =>
      Object.fromEntries(
        ds.map((d) => [
          keyOf(d),
          d.obstacle ? 'no' : `${d.results}: ${d.linkedDimensions.map((x) => `${x.tensor}.${x.axis}`)}`,
        ]),
      )
    return {
      kernel: say(kernel),
      ...Object.fromEntries(iterations.map((it) => [it.name, say(it.dimensions)])),
    }
  }

  test('dimensions of temporaries are checked in all iterations', () => {
    expect(of('C[i] += T[i, j]')).toEqual({
      kernel: {
        'A.i': 'permuted: T.i,C.i',
        'A.j': 'kept: T.j',
        'T.i': 'permuted: A.i,C.i',
        'T.j': 'kept: A.j',
        'C.i': 'permuted: A.i,T.i',
      },
      first: {
        'A.i': 'permuted: T.i',
        'A.j': 'permuted: T.j',
        'T.i': 'permuted: A.i',
        'T.j': 'permuted: A.j',
      },
      second: { 'T.i': 'permuted: C.i', 'T.j': 'kept: ', 'C.i': 'permuted: T.i' },
    })
  })

  test('one iteration can make a dimension not permutable', () => {
    const told = of('C[i] += T[i, j] * f32(j)')
    expect(told.kernel).toMatchObject({ 'A.i': 'permuted: T.i,C.i', 'A.j': 'no', 'T.j': 'no' })
    expect(told.first).toMatchObject({ 'A.j': 'permuted: T.j' })
    expect(told.second).toMatchObject({ 'T.j': 'no', 'T.i': 'permuted: C.i' })
  })
})

test('softmax: rows and the reduced dimension; conditions around an iteration count', async () => {
  const { permutable } = (await load('kernels/softmax.spt')).kernel('softmax').inspect
  expect(permutable.kernel.filter((d) => d.obstacle)).toEqual([])
  expect(permutable.iterations.map((it) => it.name)).toEqual(['normalise', 'peak', 'total', 'scale'])
  const nested = `kernel k(a: size) {
  axis i = dense_fixed(a)
  axis j = dense_fixed(a)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  buffer D: f32[j] out
  iterate outer [i] as S {
    if (i > 1) { iterate inner [j] as R { C[i] += A[i, j] } }
  }
  iterate other [j] as S { D[j] = A[0, j] }
}`
  const { iterations } = parseProgram(nested).kernel().inspect.permutable
  expect(
    iterations.map((it) => [it.name, it.dimensions.map((d) => [keyOf(d), d.obstacle === null])]),
  ).toEqual([
    [
      'outer',
      [
        ['A.i', false],
        ['A.j', true],
        ['C.i', false],
      ],
    ],
    [
      'inner',
      [
        ['A.i', false],
        ['A.j', true],
        ['C.i', false],
      ],
    ],
    [
      'other',
      [
        ['A.i', false],
        ['A.j', true],
        ['D.j', true],
      ],
    ],
  ])
})
