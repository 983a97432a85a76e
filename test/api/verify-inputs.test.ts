/** What is bound in another type than its buffer's is rounded once, by the device and by the reference alike. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { arrayClass } from '../../src/ir/values/arrays.ts'
import { DTYPES, type Dtype, INT_RANGE, isFloat } from '../../src/ir/values/dtype.ts'
import { rounding, toBf16, toF16 } from '../../src/ir/values/half.ts'
import type { Tensor, ValueArray } from '../../src/node.ts'
import { coords, dense, devices, load, readTensor, stored, writeTensor } from '../../src/node.ts'
import { space } from '../../src/search/spaces/function-space.ts'
import { runs } from '../support/cases.ts'
import { PointEvaluator } from '../support/point-evaluator.ts'
import { property } from '../support/property.ts'

const cpu = await devices.cpu()
const [m, n] = [3, 4]
/** Row by row, with one coordinate that occurs twice. */
const COLUMNS = [Int32Array.of(0, 0, 1, 2, 2), Int32Array.of(1, 3, 0, 2, 2)]
const CSR = { j: { indptr: Int32Array.of(0, 2, 3, 5), indices: Int32Array.of(1, 3, 0, 2, 3) } }

/** One input in each role, and each of them as it is in f64, where nothing is rounded. */
const textOf = (t: Dtype): string => `kernel k(m: size, n: size, x: ${t}) {
  axis i = dense_fixed(m)
  axis d = dense_fixed(n)
  axis s = sparse_variable(i, n)
  axis j = sparse_variable(i, n)
  buffer D: ${t}[i, d] in
  buffer C: ${t}[i, s] in
  buffer R: ${t}[i, j] in
  buffer U: ${t}[i, d] inout
  buffer V: f64[i, d] out
  buffer W: f64[i, s] out
  buffer X: f64[i, j] out
  buffer Y: f64[i, d] out
  buffer Z: f64[i] out
  iterate a [i, d] as SS { V[i, d] = f64(D[i, d]) }
  iterate b [i, s] as SS { W[i, s] = f64(C[i, s]) }
  iterate c [i, j] as SS { X[i, j] = f64(R[i, j]) }
  iterate e [i, d] as SS { Y[i, d] = f64(U[i, d]); U[i, d] = ${t}(D[i, d]) }
  iterate f [i] as S { Z[i] = f64(x) }
}`

/** Numbers that both types take: integers where one of them is an integer type, and within both ranges. */
function numbers(from: Dtype, to: Dtype): fc.Arbitrary<number> {
  if (from === 'bool' || to === 'bool') return fc.integer({ min: 0, max: 1 })
  const ranges = [from, to].flatMap((t) => (isFloat(t) ? [] : [INT_RANGE[t as keyof typeof INT_RANGE]]))
  if (ranges.length === 0)
    return fc.oneof(
      fc.double({ min: -60_000, max: 60_000, noNaN: true }),
      fc.constantFrom(0.1, -0, 1 + 2 ** -11 + 2 ** -30, from === 'bf16' ? 65_000 : 65503.9, 1e-5, 6e-8),
    )
  const half = isFloat(from) || isFloat(to) ? 30_000 : 2 ** 31
  // Twice a value fits, since one coordinate occurs twice.
  const min = Math.max(...ranges.map((r) => Math.ceil(r[0] / 2)), -half / 2)
  const max = Math.min(...ranges.map((r) => Math.floor(r[1] / 2)), half / 2 - 1)
  return fc.integer({ min, max })
}

const typed = (xs: readonly number[], t: Dtype): ValueArray =>
  arrayClass(t).from(t === 'f16' ? xs.map(toF16) : t === 'bf16' ? xs.map(toBf16) : xs) as ValueArray

const cases = fc.record({ from: fc.constantFrom(...DTYPES), to: fc.constantFrom(...DTYPES) }).chain((t) => {
  const list = (size: number) => fc.array(numbers(t.from, t.to), { minLength: size, maxLength: size })
  return fc.record({
    types: fc.constant(t),
    D: list(m * n),
    // C has one coordinate twice, and the sum of its values must fit as well.
    C: list(5).map((xs) =>
      isFloat(t.from) && isFloat(t.to) ? xs.map((v) => (Math.abs(v) > 32_000 ? v / 2 : v)) : xs,
    ),
    R: list(5),
    U: list(m * n),
    next: list(m * n),
    x: numbers(t.to, t.to),
  })
})

property([cases], { numRuns: runs(60) })(
  'every source type in every role, before and after `write`',
  async ({ types: { from, to }, D, C, R, U, next, x }) => {
    const compiled = await (await load(textOf(to))).kernel().build(cpu)
    const prepared = await compiled.bind({
      m,
      n,
      x,
      D: dense([m, n], typed(D, from), from),
      C: coords([m, n], COLUMNS, typed(C, from), from),
      R: stored([m, n], CSR, typed(R, from), from),
      U: dense([m, n], typed(U, from), from),
    })
    try {
      expect(await prepared.verify()).toMatchObject({ problems: [], ok: true })
      const value = (v: number): number => rounding(to)(rounding(from)(v))
      await prepared.run()
      expect([...(await prepared.get('V')).values!]).toEqual(D.map(value))
      expect([...(await prepared.get('X')).values!]).toEqual(R.map(value))
      expect([...(await prepared.get('Y')).values!]).toEqual(U.map(value))
      expect([...(await prepared.get('Z')).values!]).toEqual([x, x, x].map(rounding(to)))
      await prepared.set('D', dense([m, n], typed(next, from), from))
      await prepared.set('C', coords([m, n], COLUMNS, typed(C.toReversed(), from), from))
      await prepared.set('R', stored([m, n], CSR, typed(R.toReversed(), from), from))
      expect(await prepared.verify()).toMatchObject({ problems: [], ok: true })
    } finally {
      prepared.free()
      compiled.release()
    }
  },
)

test.each(['f16', 'bf16', 'f32'] as const)('values of files, into %s', async (to) => {
  const folder = await mkdtemp(join(tmpdir(), 'spt-inputs-'))
  const values = Float64Array.of(0.1, -1 / 3, 1e-5, 12345.678, 0.7)
  const A = coords([m, n], [COLUMNS[0]!, Int32Array.of(1, 3, 0, 2, 3)], values)
  const text = `kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis s = sparse_variable(i, n)
    buffer A: ${to}[i, s] in
    buffer B: ${to}[i] in
    buffer Y: f64[i] out
    iterate a [i, s] as SR { Y[i] += f64(A[i, s]) * f64(B[i]) }
  }`
  const compiled = await (await load(text)).kernel().build(cpu)
  try {
    await writeTensor(join(folder, 'B.npy'), dense([m], values.subarray(0, m)))
    for (const ending of ['mtx', 'npz']) {
      const path = join(folder, `A.${ending}`)
      await writeTensor(path, A)
      const tensors = { A: await readTensor(path), B: await readTensor(join(folder, 'B.npy')) }
      const prepared = await compiled.bind(tensors satisfies Record<string, Tensor>)
      expect(await prepared.verify()).toMatchObject({ problems: [], ok: true })
      prepared.free()
    }
  } finally {
    compiled.release()
    await rm(folder, { recursive: true })
  }
})

test('a search measures f16 kernels on f32 weights', async () => {
  const text = `kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis d = dense_fixed(n)
    buffer W: f16[i, d] in
    buffer Y: f32[i] out
    iterate sum [i, d] as SR { Y[i] += f32(W[i, d]) }
  }`
  const kernel = (await load(text)).kernel()
  const weights = Float32Array.from({ length: m * n }, (_, e) => Math.sin(e + 1))
  const evaluator = new PointEvaluator({
    space: space('splits', kernel, (p) => {
      const by = p.number('by', [2, 3])
      return (k) => k.split('sum.d', by)
    }),
    kernel,
    inputs: { tensors: { W: dense([m, n], weights) } },
    device: cpu,
    rounds: 3,
    seconds: 0.01,
  })
  try {
    const found = await evaluator.points([2, 3].map((by) => ({ point: { by }, share: 1 })))
    expect(found.map((o) => o.status)).toEqual(['measured', 'measured'])
    expect(evaluator.bench.coverage).toEqual({
      elements: m,
      compared: m,
      undecided: 0,
      weak: 0,
      notANumber: 0,
    })
  } finally {
    evaluator.close()
  }
})
