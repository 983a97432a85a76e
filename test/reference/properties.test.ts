import fc from 'fast-check'
import { expect, test } from 'vitest'
import { variable } from '../../src/ir/expressions/expr.ts'
import { print1 } from '../../src/ir/print/print-stage1.ts'
import { rounding } from '../../src/ir/values/half.ts'
import type { BinaryOp } from '../../src/ir/values/math.ts'
import { isExactProduct, last, roundedError } from '../../src/reference/error.ts'
import { binary, FUNCTION_ERRORS } from '../../src/reference/evaluation/bounded-operators.ts'
import { type RefOutputs, reference } from '../../src/reference/index.ts'
import type { Thunk } from '../../src/reference/tensors/cells.ts'
import { verify1 } from '../../src/verifiers/stage1.ts'
import { kernelOf } from '../elaborate/support.ts'
import { LONG, runs } from '../support/cases.ts'
import { brute } from './brute.ts'
import { samples } from './programs.ts'

/** Results as coordinates → value; -0 counts as 0. */
function table(out: RefOutputs): Record<string, Map<string, number>> {
  const entries = Object.entries(out.buffers).map(([name, r]) => {
    const t = new Map<string, number>()
    r.values.forEach((v, e) => {
      let at = e
      const coords =
        r.kind === 'sparse'
          ? r.coords.map((c) => c[e]!)
          : r.shape
              .toReversed()
              .map((extent) => {
                const c = at % extent
                at = Math.floor(at / extent)
                return c
              })
              .reverse()
      t.set(coords.join(), v + 0)
    })
    return [name, t] as const
  })
  return Object.fromEntries(entries)
}

const sorted = (t: ReadonlyMap<string, number>): unknown =>
  [...t].map(([k, v]) => [k, v + 0] as const).sort((a, b) => (a[0] < b[0] ? -1 : 1))

test('the reference agrees with brute force', () => {
  const seen = new Map<string, number>()
  fc.assert(
    fc.property(samples, ({ text, inputs, uses }) => {
      const kernel = kernelOf(text)
      verify1(kernel)
      const expected = brute(kernel, inputs)
      for (const [name, t] of Object.entries(table(reference(kernel, inputs))))
        expect(sorted(t), name).toEqual(sorted(expected[name]!))
      for (const u of uses) seen.set(u, (seen.get(u) ?? 0) + 1)
    }),
    { numRuns: runs(40) },
  )
  // Fewer cases may lack some.
  if (LONG)
    expect([...seen.keys()].sort()).toEqual(
      [
        '*',
        '+',
        'assign',
        'attached',
        'chain',
        'dense_fixed(i, n)',
        'dense_fixed(j, p)',
        'dense_fixed(m)',
        'dense_variable(i, n)',
        'dense_variable(j, p)',
        'f32',
        'fused',
        'gathered',
        'i32',
        'max',
        'min',
        'prefix',
        'sparse output',
        'sparse_fixed(i, n, n)',
        'sparse_fixed(j, p, p)',
        'sparse_variable(i, n)',
        'sparse_variable(j, p)',
        'sparse_variable(m)',
        'two levels',
      ].sort(),
    )
})

test('printed kernels parse to the same meaning', () => {
  fc.assert(
    fc.property(samples, ({ text, inputs }) => {
      const kernel = kernelOf(text)
      const again = kernelOf(print1(kernel))
      expect(print1(again)).toBe(print1(kernel))
      expect(table(reference(again, inputs))).toEqual(table(reference(kernel, inputs)))
    }),
    { numRuns: runs(40) },
  )
})

test('samples agree with the full result if they claim exactness', () => {
  fc.assert(
    fc.property(samples, fc.integer({ min: 0, max: 99 }), ({ text, inputs }, seed) => {
      const kernel = kernelOf(text)
      const whole = table(reference(kernel, inputs))
      const part = reference(kernel, inputs, { sample: { fraction: 0.5, seed } })
      for (const [name, t] of Object.entries(table(part)))
        for (const [at, v] of t) {
          const dim = part.sampled?.dims[name]
          const inside = dim === undefined || part.sampled!.coordinates.includes(Number(at.split(',')[dim]))
          if (part.sampled === null || (dim !== undefined && inside)) expect(v).toBe(whole[name]!.get(at))
        }
    }),
    { numRuns: runs(40) },
  )
})

/** Thunks of operands with error bounds, of which each sets the bound of its value. */
const bounded =
  (value: number, error: number): (() => number) =>
  () => {
    last.error = error
    return value
  }
const boundOf = (op: BinaryOp, type: 'i32' | 'f32', a: Thunk, b: Thunk, precision?: number) => {
  const [x, y] = [variable('x', type), variable('y', type)]
  const value = binary({ kind: 'binary', op, a: x, b: y, dtype: type, span: undefined }, a, b, precision)()
  return { value, error: last.error }
}

test('integer operations on inexact operands are within their bounds', () => {
  const small = fc.integer({ min: -50, max: 50 })
  const error = fc.nat(4)
  fc.assert(
    fc.property(fc.constantFrom('add', 'sub', 'mul'), small, small, error, error, (op, x, y, ex, ey) => {
      const { value, error: bound } = boundOf(op, 'i32', bounded(x, ex), bounded(y, ey))
      const f = { add: x + y, sub: x - y, mul: x * y }
      expect(value).toBe(f[op] + 0)
      for (const [a, b] of [-1, 1].flatMap((s) => [-1, 1].map((t) => [x + s * ex, y + t * ey] as const)))
        expect(Math.abs({ add: a + b, sub: a - b, mul: a * b }[op] - value)).toBeLessThanOrEqual(bound)
      if (ex === 0 && ey === 0) expect(bound).toBe(0)
    }),
    { numRuns: runs(200) },
  )
})

test('an infinite product of truncated factors is no less certain than one of whole factors', () => {
  const [a, b] = [bounded(Infinity, 0), bounded(Math.fround(1.3), 0)]
  expect(boundOf('mul', 'f32', a, b, 10)).toEqual(boundOf('mul', 'f32', a, b))
  expect(boundOf('mul', 'f32', a, b)).toEqual({ value: Infinity, error: 0 })
})

test.each(['f32', 'f16', 'bf16'] as const)(
  'a result that may round beyond the largest %s has no bound',
  (t) => {
    const round = rounding(t)
    let largest = 1
    while (Number.isFinite(round(largest * 2))) largest *= 2
    for (let step = largest / 2; step > 0 && round(largest + step) === largest + step; step /= 2)
      largest += step
    expect(roundedError(largest, 0, t)).toBe(0)
    expect(roundedError(largest, 1, t)).toBe(Infinity)
    expect(roundedError(largest / 2, 1, t)).toBeLessThan(largest)
  },
)

test('a product of doubles is exact if no digit of it is lost', () => {
  fc.assert(
    fc.property(
      fc.maxSafeInteger(),
      fc.oneof(fc.maxSafeInteger(), fc.integer({ min: -64, max: 64 })),
      (x, y) => {
        expect(isExactProduct(x, y, x * y)).toBe(BigInt(x) * BigInt(y) === BigInt(x * y))
      },
    ),
    { numRuns: runs(500) },
  )
})

test('a conjunction is undecided if a rounded condition decides it, in any order', () => {
  const kernel = kernelOf(`kernel k(n: size) {
    axis i = dense_fixed(n)
    buffer X: f32[i] in
    buffer Y: bool[] out
    iterate a [i] as R { Y[] and= X[i] * 0.1 > 0.3 }
  }`)
  const isUndecided = (X: number[]) =>
    reference(kernel, { params: { n: X.length }, buffers: { X } }).buffers.Y!.errors![0]! > 0
  // 3 · 0.1 may round to more than 0.3; 1 · 0.1 does not, which decides the conjunction.
  expect(
    [
      [3, 5],
      [5, 3],
      [5, 3, 5],
    ].map(isUndecided),
  ).toEqual([true, true, true])
  expect(
    [
      [3, 1],
      [1, 3],
      [5, 5],
      [5, 1],
    ].map(isUndecided),
  ).toEqual([false, false, false, false])
})

test('a name for a rounded value has the error of the value', () => {
  const error = (body: string) =>
    reference(
      kernelOf(`kernel k(n: size) {
        axis i = dense_fixed(n)
        buffer X: f32[i] in
        buffer Y: f32[i] out
        iterate a [i] as S { ${body} }
      }`),
      { params: { n: 1 }, buffers: { X: [3] } },
    ).buffers.Y!.errors![0]
  expect(error('let t = X[i] * 0.1 Y[i] = t * t')).toBe(error('Y[i] = (X[i] * 0.1) * (X[i] * 0.1)'))
  expect(error('let t = X[i] + X[i] Y[i] = t')).toBe(error('Y[i] = X[i] + X[i]'))
})

test('powers with exact integers as exponents have bounds at every base', () => {
  const base = fc.double({ min: -3, max: 3, noNaN: true })
  fc.assert(
    fc.property(
      base,
      fc.double({ min: 0, max: 0.5, noNaN: true }),
      fc.integer({ min: -3, max: 4 }),
      (x, ex, y) => {
        if (y < 0 && Math.abs(x) < 2 * ex + 0.1) return
        const { propagation } = FUNCTION_ERRORS.pow
        if (typeof propagation !== 'function') throw new Error('pow has its own propagation')
        const bound = propagation(x, ex, y, 0, x ** y)
        expect(bound).toBeLessThan(Number.POSITIVE_INFINITY)
        for (const other of [x - ex, x + ex])
          expect(Math.abs(other ** y - x ** y)).toBeLessThanOrEqual(bound * (1 + 1e-9) + 1e-12)
      },
    ),
    { numRuns: runs(40) },
  )
})
