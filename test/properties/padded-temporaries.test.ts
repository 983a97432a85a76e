/**
 * Temporaries that are zero where a sparse input is, such as scores of an SDDMM: formats with padding may visit what reduces
 * them. Others are rejected, and every accepted format computes what the reference does.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { costly } from '../support/cases.ts'
import { standard } from '../support/packaged-formats.ts'
import { diagnosticOf } from '../support/refusal.ts'
import { agreeOnAll } from './agree.ts'

const FORMATS = standard('csr', 'dcsr', 'csc', 'bsr')
const kernel = (make: string, use: string, as: string): string => `${FORMATS}
kernel score(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis k  = dense_fixed(d)
  buffer M: i32[i, j] in
  buffer X: i32[i, k] in
  buffer Y: i32[jd, k] in
  buffer P: i32[i, j] local
  buffer Q: i32[i, j] local
  buffer R: i32[i] out
  ${make}
  ${use}
}
schedule score.s { M as ${as} }`

const SDDMM = 'iterate dot [i, j, k] as SSR { P[i, j] += M[i, j] * X[i, k] * Y[j, k] }'
const ZERO = [
  SDDMM,
  'iterate dot [i, j] as SS { P[i, j] = M[i, j] * X[i, 0] }',
  `iterate dot [i, j] as SS { Q[i, j] = M[i, j] * Y[j, 0] }
  iterate square [i, j] as SS { P[i, j] = Q[i, j] * Q[i, j] - max(Q[i, j], 0) }`,
]
const OTHER = [
  'iterate dot [i, j] as SS { P[i, j] = M[i, j] + 1 }',
  'iterate dot [i, j] as SS { P[i, j] = X[i, 0] }',
  'iterate dot [i, j, k] as SSR { P[i, j] += X[i, k] * Y[j, k] }',
  'iterate dot [i, j, k] as SSR { P[i, j] max= M[i, j] * X[i, k] }',
]
const USES = [
  'iterate rows [i, j] as SR { R[i] += P[i, j] }',
  'iterate rows [i, j] as SR { R[i] += max(P[i, j], 0) }',
  'iterate rows [i, j] as SR { R[i] += P[i, j] * (P[i, j] + 3) }',
]
const PADDED = [
  'bsr(4)',
  'bsr(2) where (density(2) >= 0.5) + csr',
  'bsr(3)',
  'csr where (density(2) >= 0.5) + bsr(2)',
]
const COMPACT = ['csr', 'dcsr', 'csc']

const elements = fc.uniqueArray(fc.nat(7 * 9 - 1), { maxLength: 25 })
const inputs = (at: readonly number[]) => ({
  tensors: {
    M: coords(
      [7, 9],
      [Int32Array.from(at, (e) => Math.floor(e / 9)), Int32Array.from(at, (e) => e % 9)],
      Int32Array.from(at, (e) => (e % 5) - 2),
    ),
    X: dense(
      [7, 3],
      Int32Array.from({ length: 21 }, (_, e) => (e % 7) - 3),
    ),
    Y: dense(
      [9, 3],
      Int32Array.from({ length: 27 }, (_, e) => (e % 4) - 1),
    ),
  },
  params: { m: 7, n: 9, d: 3 },
})

test('formats with padding may reduce temporaries that are zero there', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...ZERO),
      fc.constantFrom(...USES),
      fc.constantFrom(...PADDED),
      elements,
      async (make, use, as, at) => {
        const { compilation } = parseProgram(kernel(make, use, as))
          .kernel()
          .schedule('s')
        await agreeOnAll(compilation, inputs(at))
      },
    ),
    { numRuns: costly(60) },
  )
})

test.each(OTHER.flatMap((make) => PADDED.map((as) => [make, as] as const)))(
  '%s as %s is rejected',
  (make, as) => {
    const found = diagnosticOf(
      () =>
        parseProgram(kernel(make, USES[0]!, as))
          .kernel()
          .schedule('s').compilation.loops,
    )
    expect(found?.code).toBe('schedule/format-padding')
  },
)

test.each(COMPACT)('%s stores no padding', async (as) => {
  for (const make of OTHER) {
    const { compilation } = parseProgram(kernel(make, USES[1]!, as))
      .kernel()
      .schedule('s')
    await agreeOnAll(compilation, inputs([3, 9, 40, 41]))
  }
})

test('sparsity attributes state where a temporary is zero', () => {
  const tensors = (make: string) =>
    parseProgram(kernel(make, USES[0]!, 'csr')).kernel().inspect.attributes.tensors
  expect(tensors(SDDMM).find((t) => t.tensor === 'P')!.maskedValues).toEqual([
    {
      mask: 'M',
      dimensions: [
        { dimension: 0, axis: 'i' },
        { dimension: 1, axis: 'j' },
      ],
      value: 0,
      zero: true,
    },
  ])
  expect(tensors(OTHER[0]!).find((t) => t.tensor === 'P')!.maskedValues).toEqual([])
})
