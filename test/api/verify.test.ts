/** What `verify` takes for right and for wrong: no false alarm from rounding on the way, no error let through. */

import { expect, test } from 'vitest'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, dense, devices, load } from '../../src/node.ts'
import { expectedOf } from '../../src/run/bind/results/reference-inputs.ts'
import { verifyAgainst } from '../../src/run/verify/verify.ts'

const cpu = await devices.cpu()

/** The kernel's verification; with `wrong`, of what that computes against the kernel. */
async function verified(body: string, inputs: RunInputs, wrong = body) {
  const text = (b: string): string => `kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = dense_fixed(n)
    axis s = sparse_variable(i, n)
    ${b}
  }`
  const right = (await load(text(body))).kernel()
  const compiled = await (await load(text(wrong))).kernel().build(cpu)
  const prepared = await compiled.bind(...flatInputs(inputs))
  try {
    const expected = expectedOf(right.compilation.source, prepared.executable.bound)
    return await verifyAgainst(prepared.code.compilation.source, prepared.executable, expected)
  } finally {
    prepared.free()
    compiled.release()
  }
}

const spread = (n: number): number[] => Array.from({ length: n }, (_, k) => Math.sin(k * 12.9898) * 3)
const [m, n] = [20, 30]
const A = coords(
  [m, n],
  [Array.from({ length: 90 }, (_, k) => k % m), Array.from({ length: 90 }, (_, k) => (k * 7) % n)],
  spread(90),
  'f64',
)
const X = dense([m], spread(m))
const W = dense([m, n], spread(m * n))
const params = { m, n }

const HELD: readonly (readonly [string, string, RunInputs])[] = [
  [
    'a cast that overflows',
    'buffer X: f32[i] in buffer Y: f32[i] out iterate a [i] as S { Y[i] = f32(f16(X[i])) }',
    { params, tensors: { X: dense([m], Array(m).fill(70_000), 'f32') } },
  ],
  [
    'casts to narrow types',
    'buffer X: f32[i] in buffer Y: f32[i] out buffer Z: f32[i] out iterate a [i] as S { Y[i] = f32(f16(X[i] * 1.1)) * 1000.0; Z[i] = f32(bf16(X[i])) + 1.0 }',
    { params, tensors: { X } },
  ],
  [
    'a narrow local on the way',
    'buffer W: f32[i, j] in buffer T: f16[i] local accumulate f32 buffer U: bf16[i] local buffer Y: f32[i] out iterate a [i, j] as SR { T[i] += f16(W[i, j]) } iterate b [i] as S { U[i] = bf16(f32(T[i]) * 3.0) } iterate c [i] as S { Y[i] = f32(U[i]) - 1.0 }',
    { params, tensors: { W } },
  ],
  [
    'a narrow output that is read again',
    'buffer W: f16[i, j] in buffer T: f16[i] out accumulate f32 buffer G: f32[j] out iterate a [i, j] as SR { T[i] += W[i, j] * f16(0.3) } iterate b [i, j] as RS { G[j] max= f32(T[i]) * f32(W[i, j]) }',
    { params, tensors: { W } },
  ],
  [
    'sums that cancel',
    'buffer X: f32[i] in buffer Y: f32[j] out iterate a [i, j] as RS { Y[j] += X[i] * 100000.0 } iterate b [i, j] as RS { Y[j] += X[i] * -100000.0 }',
    { params, tensors: { X } },
  ],
  [
    'integers added to a bound fraction',
    'buffer X: f32[j] in buffer Y: f32[i] inout iterate a [j, i] as RS { Y[i] += X[j] }',
    {
      params,
      tensors: {
        X: dense(
          [n],
          Array.from({ length: n }, (_, k) => (k % 2 ? -103 : 103)),
        ),
        Y: dense([m], Array(m).fill(0.1), 'f32'),
      },
    },
  ],
  [
    'a condition at a tie',
    'buffer X: f32[i] in buffer Y: i32[i] out iterate a [i] as S { if (X[i] * 0.1 * 10.0 >= X[i]) { Y[i] = 1 } else { Y[i] = i32(floor(X[i] * 0.1 * 10.0)) } }',
    {
      params,
      tensors: {
        X: dense(
          [m],
          Array.from({ length: m }, (_, k) => k),
          'f32',
        ),
      },
    },
  ],
  [
    'infinities and NaN',
    'buffer X: f32[i] in buffer Y: f32[i] out buffer Z: f32[] out buffer M: f32[] out iterate a [i] as S { Y[i] = X[i] * 2.0 + 1.0 } iterate b [i] as R { Z[] += X[i]; M[] max= X[i] }',
    {
      params,
      tensors: {
        X: dense(
          [m],
          Array.from({ length: m }, (_, k) => (k === 3 ? Infinity : k === 4 ? -Infinity : k === 5 ? NaN : k)),
        ),
      },
    },
  ],
  [
    'softmax',
    'buffer A: f32[i, s] in buffer M: f32[i] local buffer Z: f32[i] local buffer P: f32[i, s] out iterate a [i] as S { iterate b [s] as R { M[i] max= A[i, s] } iterate c [s] as R { Z[i] += exp(A[i, s] - M[i]) } iterate d [s] as S { P[i, s] = exp(A[i, s] - M[i]) / Z[i] } }',
    { params, tensors: { A } },
  ],
]

/** Where rounding leaves little to compare, a verification says so. */
const LITTLE: Readonly<Record<string, readonly string[]>> = {
  'sums that cancel': ['of 100 % of the elements the allowed error is as large as the value: 0 would pass'],
  'a condition at a tie': ['95 % of the elements are decided by rounding, and not compared'],
}

test.each(HELD)('no false alarm: %s', async (_, body, inputs) => {
  const v = await verified(body, inputs)
  expect(v.problems).toEqual([])
  expect(v.ok).toBe(true)
})

test.each(HELD)('elements are compared, not skipped: %s', async (name, body, inputs) => {
  const v = await verified(body, inputs)
  expect(v.verdict).toBe('agrees')
  expect(v.compared).toBeGreaterThan(0)
  expect(v.compared + v.undecided).toBe(v.elements)
  expect(v.warnings).toEqual(LITTLE[name] ?? [])
})

test('a long sum with one-sided rounding is not a false alarm', async () => {
  const long = { params: { m: 200_000, n: 1 }, tensors: { X: new Float32Array(200_000).fill(0.1) } }
  const body = 'buffer X: f32[i] in buffer Y: f32[] inout iterate a [i] as R { Y[] += X[i] }'
  const v = await verified(body, { ...long, tensors: { ...long.tensors, Y: dense([], [0], 'f32') } })
  expect(v.problems).toEqual([])
})

test('elements that rounding decides are counted, others are compared', async () => {
  const body = (f: string) =>
    `buffer X: f32[i] in buffer Y: f32[i] out iterate a [i] as S { Y[i] = select(X[i] * 0.1 > 0.3, 1.0, ${f}) }`
  const inputs = {
    params,
    tensors: {
      X: dense(
        [m],
        Array.from({ length: m }, (_, k) => k),
        'f32',
      ),
    },
  }
  const v = await verified(body('2.0'), inputs)
  expect(v).toMatchObject({ ok: true, undecided: 1 })
  expect((await verified(body('2.0'), inputs, body('3.0'))).ok).toBe(false)
  const jump = 'buffer X: f32[i] in buffer Y: i32[i] out iterate a [i] as S { Y[i] = i32(floor(X[i] * 0.1)) }'
  expect((await verified(jump, inputs)).ok).toBe(true)
})

test.each([
  ['Y[i] = exp(min(select(i > 1, -inf, 1.0), X[i] * 0.1))'],
  ['Y[i] = 1.0 / max(select(i > 1, inf, 1.0), X[i] * 0.1)'],
  ['Y[i] min= select(i > 1, -inf, X[i] * 0.1)'],
  ['Y[i] max= min(X[i] * 0.1, select(i > 1, -inf, 3.0))'],
] as const)('a rounded number beside an infinity leaves nothing undecided: %s', async (what) => {
  const body = `buffer X: f32[i] in buffer Y: f32[i] out iterate a [i] as S { ${what} }`
  const inputs = {
    params,
    tensors: {
      X: dense(
        [m],
        Array.from({ length: m }, (_, k) => k + 0.3),
        'f32',
      ),
    },
  }
  expect(await verified(body, inputs)).toMatchObject({ ok: true, undecided: 0 })
})

test('integers computed under a rounding-dependent condition are undecided', async () => {
  const v = await verified(
    'buffer Y: i32[i] local buffer O: i32[i] out iterate a [i] as S where (i32(exp(f32(i))) >= 1) { Y[i] = 3 } iterate b [i] as S { O[i] = Y[i] * 2 + 1 }',
    { params: { m: 3, n: 1 }, tensors: {} },
  )
  expect(v).toMatchObject({ ok: true, undecided: 1 })
})

const SUM = 'iterate a [i, s] as SR { Y[i] += A[i, s] * X[i] }'
const declared = 'buffer A: f32[i, s] in buffer X: f32[i] in buffer T: f16[i] local buffer Y: f32[i] out'
const WRONG: readonly (readonly [string, string, string])[] = [
  [
    'a missing element',
    SUM,
    'iterate a [i, s] as SR where (not (i == 3 and s == A_LAST)) { Y[i] += A[i, s] * X[i] }',
  ],
  ['a wrong index', SUM, 'iterate a [i, s] as SR { Y[i] += A[i, s] * X[max(i - 1, 0)] }'],
  [
    'one value off by a hundredth',
    SUM,
    'iterate a [i, s] as SR { Y[i] += A[i, s] * X[i] * select(i == 7, 1.01, 1.0) }',
  ],
  ['nothing written', SUM, 'iterate a [i, s] as SR where (i != 5) { Y[i] += A[i, s] * X[i] }'],
  [
    'behind a narrow type, a tenth',
    'iterate a [i] as S { T[i] = f16(X[i]) } iterate b [i] as S { Y[i] = f32(T[i]) }',
    'iterate a [i] as S { T[i] = f16(X[i] * select(i == 7, 1.1, 1.0)) } iterate b [i] as S { Y[i] = f32(T[i]) }',
  ],
  [
    'one more by one in whole numbers',
    'iterate a [i, s] as SR { Y[i] += floor(X[i]) }',
    'iterate a [i, s] as SR { Y[i] += floor(X[i]) + select(i == 7, 1.0, 0.0) }',
  ],
  ['infinity for a number', SUM, 'iterate a [i, s] as SR { Y[i] += A[i, s] * select(i == 7, inf, X[i]) }'],
  ['infinity of the other sign', 'iterate a [i] as S { Y[i] = inf }', 'iterate a [i] as S { Y[i] = -inf }'],
  ['NaN for infinity', 'iterate a [i] as S { Y[i] = inf }', 'iterate a [i] as S { Y[i] = nan }'],
]

test.each(WRONG)('detected: %s', async (_, right, wrong) => {
  const last = Math.max(...Array.from({ length: 90 }, (_, k) => (k % m === 3 ? (k * 7) % n : -1)))
  const inputs = { params, tensors: { A, X } }
  const v = await verified(
    `${declared} ${right}`,
    inputs,
    `${declared} ${wrong.replace('A_LAST', String(last))}`,
  )
  expect(v.ok).toBe(false)
  expect((await verified(`${declared} ${right}`, inputs)).problems).toEqual([])
})

test('verify and explain do not change an inout buffer', async () => {
  const text = `kernel k(m: size) {
    axis i = dense_fixed(m)
    buffer X: f32[i] inout
    buffer Y: f32[i] out
    iterate a [i] as S { X[i] = X[i] + 1.0; Y[i] = X[i] }
  }`
  const compiled = await (await load(text)).kernel().build(cpu)
  const prepared = await compiled.bind({ X: [0, 5] })
  const X = async () => [...(await prepared.get('X')).values!]
  await prepared.run()
  expect((await prepared.verify()).ok).toBe(true)
  expect(await X()).toEqual([1, 6])
  await prepared.run()
  await prepared.explain()
  expect(await X()).toEqual([2, 7])
  expect([...(await prepared.get('Y')).values!]).toEqual([2, 7])
  prepared.free()
  compiled.release()
})

test('unwritten elements of a bool output are read as stored', async () => {
  const text = `kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    buffer X: f32[i, j] in
    buffer Y: bool[i, j] out
    iterate a [i, j] as SS { Y[i, j] = X[i, j] > 0.0 }
  }`
  const compiled = await (await load(text)).kernel().build(cpu)
  const prepared = await compiled.bind({ X: coords([1, 2], [[0], [1]], [1]) })
  await prepared.executable.poison()
  expect([...(await prepared.get('Y')).values!]).toEqual([255])
  expect((await prepared.verify()).ok).toBe(true)
  prepared.free()
  compiled.release()
})
