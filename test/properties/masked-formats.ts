/** Formats that keep a mask, and kernels that padding would show in. */
import { standard } from '../support/packaged-formats.ts'

const AXES = `axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)`
export const KERNELS = `
kernel extremes(m: size, n: size) {
  ${AXES}
  buffer A: i32[i, j] in
  buffer H: i32[i] out
  buffer L: i32[jd] out
  buffer N: i32[] out
  buffer Z: i32[i] out
  iterate high [i, j] as SR { H[i] max= A[i, j] }
  iterate low [i, j] as RR { L[j] min= A[i, j] }
  iterate many [i, j] as RR { N[] += 1 }
  iterate least [i, j] as SR { let x = A[i, j] - H[i]  Z[i] += x * x + 1 }
}
kernel softmax(m: size, n: size) {
  ${AXES}
  buffer A: f32[i, j] in
  buffer M: f32[i] local
  buffer Z: f32[i] local
  buffer P: f32[i, j] out
  iterate normalise [i] as S {
    iterate highest [j] as R { M[i] max= A[i, j] }
    iterate total [j] as R { Z[i] += exp(A[i, j] - max(M[i], -3.4e+38)) }
    iterate scale [j] as S { P[i, j] = exp(A[i, j] - max(M[i], -3.4e+38)) / Z[i] }
  }
}
kernel attend(m: size, n: size) {
  ${AXES}
  buffer A: i32[i, j] in
  buffer x: i32[jd] in
  buffer S: i32[i, j] local
  buffer P: i32[i, j] local
  buffer H: i32[i] out
  buffer y: i32[i] out
  iterate score [i, j] as SS { S[i, j] += A[i, j] + x[j] }
  iterate high [i, j] as SR { H[i] max= S[i, j] }
  iterate weigh [i, j] as SS { P[i, j] = S[i, j] - H[i] + 3 }
  iterate sum [i, j] as SR { y[i] += P[i, j] * x[j] }
}
kernel put(m: size, n: size) {
  ${AXES}
  buffer A: i32[i, j] in
  buffer D: i32[i, jd] out
  iterate each [i, j] as SS { D[i, j] = A[i, j] + 5 }
}
kernel update(m: size, n: size) {
  ${AXES}
  buffer A: i32[i, j] inout
  buffer x: i32[jd] in
  buffer y: i32[i] out
  iterate shift [i, j] as SS { A[i, j] = A[i, j] + 2 }
  iterate more [i, j] as SS { A[i, j] += 3 }
  iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] }
}
kernel product(m: size, n: size) {
  ${AXES}
  buffer A: i32[i, j] in
  buffer x: i32[jd] in
  buffer y: i32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] }
}
kernel pairs(m: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, m)
  axis k = attached(j, j)
  buffer A: i32[i, j] in
  buffer C: i32[i] out
  iterate all [i, j, k] as SRR { C[i] max= A[i, j] + A[j, k] }
}
`
export const KERNEL_NAMES = ['extremes', 'softmax', 'attend', 'update'] as const

/** What keeps apart the elements that `put` assigns. */
export const APART = [
  'bsr_masked(2)',
  'dbsr_masked(2)',
  'blocked_masked(2, 3)',
  'ell_masked',
  'ragged_masked',
  'bsr_masked(2) where (count(i, j by i / 2, j / 2) > 1) + csr',
]
/** What has rows to enter. */
export const ROWS = ['ell_masked', 'ragged_masked']

/** A format of the package with a mask, by another name. */
const masked = (name: string): string =>
  standard(name)
    .replace(`format ${name}`, `format ${name}_masked`)
    .replace(/\}\s*$/, '  mask held\n}\n')

export const FORMATS = `
${standard('csr', 'bsr', 'coo')}
${['bsr', 'dbsr', 'ell', 'ell_at', 'sell', 'sr_bcrs', 'panels', 'ragged', 'bsr_groups_by_length', 'bsr_by_length'].map(masked).join('')}
format blocked_masked(h, w) over (i, j) {
  axis jo = sparse_variable(ceildiv(j, w))
  axis io = sparse_variable(jo, ceildiv(i, h))
  axis ji = dense_fixed(io, w)
  axis ii = dense_fixed(ji, h)
  map (i, j) -> (j / w, i / h, j % w, i % h)
  inverse (jo, io, ji, ii) -> (io * h + ii, jo * w + ji)
  mask held
}
format all_masked over (i, j) {
  axis io = dense_fixed(i)
  axis jo = dense_fixed(j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
  mask held
}
format last_masked(w: size) over (i, j) {
  axis io = sparse_variable(i)
  axis jo = sparse_fixed(io, j, w) padded with last
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
  mask held
}
`
/** As uses, for matrices that are not empty. */
export const USES: readonly string[] = [
  'bsr_masked(3)',
  'bsr_masked(2)',
  'dbsr_masked(2)',
  'blocked_masked(2, 3)',
  'blocked_masked(3, 1)',
  'all_masked',
  'ell_masked',
  'ell_at_masked(0)',
  'last_masked',
  'sell_masked(2, 4)',
  'sr_bcrs_masked(2, 2)',
  'panels_masked(2, 2)',
  'ragged_masked',
  'bsr_groups_by_length_masked(2, 2)',
  'bsr_by_length_masked(2)',
  'bsr_masked(2) where (count(i, j by i / 2, j / 2) > 1) + csr',
  'bsr_masked(2) where (j % 3 == 0) + ell_masked where (i % 2 == 0 and j % 3 > 0) + coo',
]
