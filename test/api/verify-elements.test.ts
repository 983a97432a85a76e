/** The tolerance is of each element, and in proportion to its own terms: no element hides behind another. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { precisionOf } from '../../src/plan/launch-plan.ts'
import { type RefDenseResult, type RefOptions, reference } from '../../src/reference/index.ts'
import { compareOutput } from '../../src/run/verify/compare-outputs.ts'
import { kernelOf } from '../elaborate/support.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

const kernel = kernelOf(`kernel sums(m: size, n: size) {
  axis i = dense_fixed(m)
  axis k = dense_fixed(n)
  buffer A: f32[i, k] in
  buffer X: f32[k] in
  buffer Y: f32[i] out
  iterate sum [i, k] as SR { Y[i] += A[i, k] * X[k] }
}`)

interface Data {
  readonly rows: readonly (readonly number[])[]
  readonly x: readonly number[]
}

const expectedOf = ({ rows, x }: Data, options: RefOptions = {}): RefDenseResult => {
  const inputs = {
    params: { m: rows.length, n: x.length },
    buffers: { A: rows.flat().map(Math.fround), X: x.map(Math.fround) },
  }
  return reference(kernel, inputs, options).buffers.Y as RefDenseResult
}

/** The row in f32, its terms in the order of `keys`, without those that are `dropped`. */
function rowOf(
  { rows, x }: Data,
  row: number,
  keys: readonly number[],
  dropped: number | null = null,
): number {
  const order = x.map((_, k) => k).sort((a, b) => keys[a]! - keys[b]!)
  return order.reduce(
    (sum, k) =>
      k === dropped ? sum : Math.fround(sum + Math.fround(Math.fround(rows[row]![k]!) * Math.fround(x[k]!))),
    0,
  )
}

const compare = (values: readonly number[], want: RefDenseResult) =>
  compareOutput(
    'Y',
    { kind: 'dense', shape: want.shape, values: Float32Array.from(values), dtype: 'f32' },
    want,
    null,
  )

/** Between 0.1 and 1 or -0.1 and -1, times a scale of each row. */
const term = fc
  .tuple(fc.double({ min: 0.1, max: 1, noNaN: true }), fc.boolean())
  .map(([v, s]) => (s ? v : -v))
const data = fc
  .record({ m: fc.integer({ min: 1, max: 6 }), n: fc.integer({ min: 1, max: 60 }) })
  .chain(({ m, n }) =>
    fc.record({
      rows: fc.array(
        fc
          .tuple(fc.array(term, { minLength: n, maxLength: n }), fc.integer({ min: -30, max: 30 }))
          .map(([row, scale]) => row.map((v) => v * 2 ** scale)),
        { minLength: m, maxLength: m },
      ),
      x: fc.array(term, { minLength: n, maxLength: n }),
      keys: fc.array(fc.double({ noNaN: true }), { minLength: n, maxLength: n }),
      row: fc.nat({ max: m - 1 }),
      dropped: fc.nat({ max: n - 1 }),
    }),
  )

property([data], { numRuns: runs(200) })('any order of terms passes', (d) => {
  const values = d.rows.map((_, r) => rowOf(d, r, d.keys))
  expect(compare(values, expectedOf(d))).toMatchObject({
    problem: null,
    compared: d.rows.length,
    undecided: 0,
  })
})

property([data], { numRuns: runs(200) })(
  'a missing term is detected, however large other elements are',
  (d) => {
    const values = d.rows.map((_, r) => rowOf(d, r, d.keys, r === d.row ? d.dropped : null))
    expect(compare(values, expectedOf(d)).problem).toMatch(`Y[${d.row}] is `)
  },
)

/** Cut off, as tensor cores take factors. */
const tf32 = (x: number): number => {
  const word = new Uint32Array(Float32Array.of(x).buffer)
  word[0]! &= 0xffffe000
  return new Float32Array(word.buffer)[0]!
}

property([data], { numRuns: runs(200) })('lower-precision factors pass if an instruction has them', (d) => {
  const cut = {
    ...d,
    rows: d.rows.map((row) => row.map((v) => tf32(Math.fround(v)))),
    x: d.x.map((v) => tf32(v)),
  }
  const values = d.rows.map((_, r) => rowOf(cut, r, d.keys))
  expect(compare(values, expectedOf(d, { precision: 10 }))).toMatchObject({ problem: null, undecided: 0 })
})

test('lower-precision factors are detected if no instruction has them', () => {
  const d = { rows: [[0.7]], x: [0.3] }
  const values = [tf32(0.7) * tf32(0.3)]
  expect(compare(values, expectedOf(d)).problem).toMatch('Y[0] is ')
  expect(compare(values, expectedOf(d, { precision: 10 })).problem).toBe(null)
  const exact = { rows: [[0.75]], x: [3] }
  expect([...expectedOf(exact, { precision: 10 }).errors]).toEqual([...expectedOf(exact).errors])
})

test('the precision of a plan is that of its least precise instruction', async () => {
  const kernel = (await load('kernels/gemm-tf32.spt')).kernel('gemm_tf32')
  expect(precisionOf(kernel.schedule('mma').compilation.plan)).toBe(10)
  expect(precisionOf(kernel.schedule('gpu').compilation.plan)).toBe(undefined)
})

test('zeros next to one large element are detected', () => {
  const rows = Array.from({ length: 1000 }, (_, i) => [i === 7 ? 1e9 : 1])
  const want = expectedOf({ rows, x: [0.1] })
  const zeros = rows.map((_, i) => (i === 7 ? want.values[7]! : 0))
  expect(compare([...want.values], want).problem).toBe(null)
  expect(compare(zeros, want).problem).toMatch('is 0, the reference has 0.1')
})

test('elements for which 0 would pass are counted', () => {
  const half = kernelOf(`kernel sums(m: size, n: size) {
    axis i = dense_fixed(m)
    axis k = dense_fixed(n)
    buffer A: f16[i, k] in
    buffer Y: f16[i] out accumulate f16
    iterate sum [i, k] as SR { Y[i] += A[i, k] }
  }`)
  const [m, n] = [3, 4096]
  const A = Array.from({ length: m * n }, (_, e) => (e < n ? 1 : e < 2 * n ? 0 : e % 2 === 0 ? 0.5 : -0.25))
  const want = reference(half, { params: { m, n }, buffers: { A } }).buffers.Y as RefDenseResult
  const got = { kind: 'dense', shape: [m], values: new Uint16Array(m), dtype: 'f16' } as const
  expect(compareOutput('Y', got, want, null)).toMatchObject({ compared: 3, weak: 2, problem: null })
})

/** T is a rounded number near each X; Y is computed of it. */
const errorsOf = (X: readonly number[], value: string, type = 'f32'): readonly number[] => {
  const k = kernelOf(`kernel rounded(m: size) {
    axis i = dense_fixed(m)
    buffer X: f32[i] in
    buffer T: f32[i] local
    buffer Y: ${type}[i] out
    iterate a [i] as S { T[i] = X[i] * 0.1 * 10.0 }
    iterate b [i] as S { ${value} }
  }`)
  return [...(reference(k, { params: { m: X.length }, buffers: { X } }).buffers.Y as RefDenseResult).errors]
}

test.each<[value: string, type?: string]>([
  ['Y[i] = select(T[i] > 3.0, 1000.0, 900.0)'],
  ['Y[i] = select(T[i] > 3.0 and X[i] > 0.0, T[i], 0.0)'],
  ['Y[i] = select(not (T[i] == 3.0), 1.0, 0.0) * 0.5'],
  ['if (T[i] > 3.0) { Y[i] = 1000.0 } else { Y[i] = 900.0 }'],
  ['Y[i] = floor(T[i]) + 100000.0'],
  ['Y[i] = ceil(T[i])'],
  ['Y[i] = round(T[i] + 0.5)'],
  ['Y[i] = sign(T[i] - 3.0)'],
  ['Y[i] += f32(T[i] > 3.0)'],
  ['Y[i] = i32(T[i])', 'i32'],
  ['Y[i] = T[i] > 3.0', 'bool'],
  ['Y[i] or= T[i] > 3.0', 'bool'],
])('an element at a discontinuity is undecided, others are compared: %s', (value, type = 'f32') => {
  const [before, at, after] = errorsOf([2.75, 3, 3.25], value, type)
  expect(at).toBe(Number.POSITIVE_INFINITY)
  expect(Math.max(before!, after!)).toBeLessThan(0.1)
})

/** Both sides agree at 3, so that either is a correct result. */
const CONTINUOUS = [
  'select(T[i] > 3.0, T[i] - 3.0, 0.0)',
  'select(T[i] > 3.0, 0.0, 3.0 - T[i])',
  'select(T[i] > 3.0, T[i], 3.0)',
  'select(T[i] > 3.0, 3.0, T[i])',
  'select(T[i] > 3.0, T[i] - 3.0, 0.01 * (T[i] - 3.0))',
  'select(T[i] > 3.0, 7.0, 7.0)',
  'max(T[i] - 3.0, 0.0)',
  'abs(T[i] - 3.0)',
]
const near = fc.array(fc.integer({ min: -40, max: 40 }), { minLength: 1, maxLength: 20 })

property([near, fc.constantFrom(...CONTINUOUS)], { numRuns: runs(200) })(
  'continuous functions by cases are compared everywhere',
  (steps, value) => {
    const X = [3, ...steps.map((k) => 3 + k * 2 ** -22)]
    for (const error of errorsOf(X, `Y[i] = ${value}`)) expect(error).toBeLessThan(1e-4)
  },
)
