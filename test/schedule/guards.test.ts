/** Conditions stand where what protects their reads has been decided, and vector loops innermost, after every pass. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { verifyPass } from '../../src/api/stages/stage-verifier.ts'
import { type Expr, int, load, lt, variable } from '../../src/ir/expressions/expr.ts'
import { verify2 } from '../../src/verifiers/stage2.ts'
import { interpreted } from '../support/interpreted.ts'
import { at, buffer, kernel2, loop, store } from '../support/stage2-builders.ts'

const POSITIVE = `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer Y: f32[jd] out
  iterate first [i, j] as RS { if (A[i, j] > 0) { Y[j] += A[i, j] } }
}
schedule k.s { fuse (i, j)  split ij by 2 -> (a, b)  combine Y }
schedule k.t { fuse (i, j)  combine Y  split Y_partial.ij by 4 -> (a, b)  split b by 2 -> (c, d) }`

test.each(['s', 't'])('%s: reads are guarded by their bounds check', (name) => {
  const kernel = parseProgram(POSITIVE).kernel().schedule(name)
  kernel.compilation.observe(verifyPass)
  for (const count of [1, 3, 5]) {
    const rows = Int32Array.from({ length: count }, (_, e) => e)
    const columns = rows.map((e) => e % 2)
    const values = Float32Array.from(rows, (e) => e + 1)
    const A = {
      kind: 'coords' as const,
      shape: [8, 2],
      coords: [rows, columns],
      values,
      dtype: 'f32' as const,
    }
    const sums = [0, 1].map((c) => values.filter((_, e) => columns[e] === c).reduce((a, b) => a + b, 0))
    // The interpreter refuses to read beyond the end.
    expect(interpreted(kernel, { tensors: { A } }).get('Y')).toEqual(sums)
  }
})

test('bounds checks precede other guards, as a verifier checks', () => {
  const read: Expr = lt(int(0), load('x', [variable('i')], 'i32'))
  const bound = lt(variable('i'), variable('n'))
  const made = loop('i', 8, [store(at('y', ['i'], 'i32'), 1)], { guards: [read, bound] })
  expect(made.guards).toEqual([bound, read])
  const buffers = [buffer('x', ['n'], 'in', { dtype: 'i32' }), buffer('y', [8], 'out', { dtype: 'i32' })]
  const kernel = kernel2('k', ['n'], buffers, [made])
  verify2(kernel)
  expect(() => verify2({ ...kernel, body: [{ ...made, guards: [read, bound] }] })).toThrow(
    'a guard reads memory before bounds are tested',
  )
})

test('vector loops around barriers', () => {
  const kernel = parseProgram(`kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis q = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer Y: f32[i, j] out
  iterate first [q, i, j] as RSS { Y[i, j] += A[i, j] }
}
schedule k.s { fuse (i, j)  split q by 2 -> (qa, qb)  atomic Y  split ij by 2 -> (a, b)  vectorize b }`)
    .kernel()
    .schedule('s')
    .parallel()
  let vectors = 0
  for (const options of [{}, { lanes: 4, together: true }, { lanes: 32 }])
    kernel.compilation.observe((pass, result) => {
      verifyPass(pass, result)
      vectors++
    }, options)
  expect(vectors).toBeGreaterThan(0)
})
