/** Loops that end where something was counted stay inside of those that say where. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/program.ts'
import { refusal } from '../support/refusal.ts'

const program = (steps: string) =>
  parseProgram(`
kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer B: f32[q, j] in
  buffer C: f32[i, j] out
  iterate mul [i, q, j] as SRS { C[i, j] += A[i, q] * B[q, j] }
}
format panels(h, s) over (i, j) {
  axis io = dense_fixed(ceildiv(i, h))
  axis go = dense_variable(io, j)
  list jo = sparse_fixed(go, j, s) padded with last
  axis ii = dense_fixed(go, h)
  axis ji = dense_fixed(ii, jo)
  map (i, j) -> (i / h, rank(j by i / h) / s, j, i % h, position(jo))
  inverse (io, go, ii, ji) -> (io * h + ii, jo[ji])
}
schedule product.s {
  A as panels(4, 2) live in place
  ${steps}
}`)
    .kernel()
    .schedule('s')

test.each(['reorder (mul.go, mul.io)', 'reorder (j, mul.go, mul.io)', 'reorder (pad_A.go, pad_A.io)'])(
  '%s is refused',
  (steps) => {
    const { code, message } = refusal(() => program(steps))
    expect([code, message]).toEqual([
      'schedule/parent-first',
      'go would come before io, which says where it ends',
    ])
  },
)

test('others go anywhere', () => {
  expect(() => program('reorder (mul.ji, mul.ii, j, mul.io, mul.go)')).not.toThrow()
})
