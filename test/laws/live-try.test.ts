import { test, expect } from 'vitest'
import { parseProgram } from '../../src/api/program.ts'
import { agreeOnAll } from './agree.ts'
const F = `format panels(h, s) over (i, j) {
  axis io = dense_fixed(ceildiv(i, h))
  axis go = dense_variable(io, j)
  list jo = sparse_fixed(go, j, s) padded with last
  axis ii = dense_fixed(go, h)
  axis ji = dense_fixed(ii, jo)
  map (i, j) -> (i / h, rank(j by i / h) / s, j, i % h, position(jo))
  inverse (io, go, ii, ji) -> (io * h + ii, jo[ji])
}
format sr_bcrs(t, g) over (i, j) {
  axis so = dense_fixed(ceildiv(i, t))
  axis go = dense_variable(so, j)
  axis jo = sparse_fixed(go, j, g)
  axis ii = dense_fixed(jo, t)
  map (i, j) -> (i / t, rank(j by i / t) / g, j, i % t)
  inverse (so, go, jo, ii) -> (so * t + ii, jo)
}
format rows_of(w, s) over (i, j) {
  axis jo = dense_fixed(ceildiv(j, w))
  axis go = dense_variable(jo, i)
  axis io = sparse_fixed(go, i, s)
  axis ji = dense_fixed(io, w)
  map (i, j) -> (j / w, rank(i by j / w) / s, i, j % w)
  inverse (jo, go, io, ji) -> (io, jo * w + ji)
}
format bsr(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`
const K = `kernel mm(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer B: f32[q, j] in
  buffer C: f32[i, j] out
  iterate mul [i, q, j] as SRS { C[i, j] += A[i, q] * B[q, j] }
}
`
test.each(['panels(4, 2)', 'sr_bcrs(4, 2)', 'rows_of(4, 2)', 'bsr(3)', 'csr'])('%s', async (f) => {
  const k = parseProgram(`${F}${K}schedule mm.s { A as ${f} live in place }`).kernel().schedule('s')
  const c = k.compilation
  if (f.startsWith('panels')) console.log(k.show(1), k.show(2))
  const [m, n, q] = [9, 5, 7]
  const A = Float32Array.from({ length: m * q }, (_, x) => ((x * 7) % 5 === 0 ? (x % 3) + 1 : (x % 2 ? -0 : 0)))
  const B = Float32Array.from({ length: q * n }, (_, x) => (x % 7) - 3)
  await agreeOnAll(c, { tensors: { A: { kind: 'dense', shape: [m, q], values: A, dtype: 'f32' }, B: { kind: 'dense', shape: [q, n], values: B, dtype: 'f32' } } })
})
