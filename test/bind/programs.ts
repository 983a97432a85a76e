/** Formats and compositions of every kind, and kernels that read, write and share what is stored in them. */
import { standard } from '../support/packaged-formats.ts'
export const FORMATS = `
${standard('csr', 'coo', 'ell', 'ell_at', 'bsr', 'sell', 'rows_ell', 'sr_bcrs', 'band', 'vbr', 'bitmap_blocks')}
format dia over (i, j) {
  axis do = sparse_variable(i + j - 1)
  axis ii = dense_fixed(i)
  map (i, j) -> (j - i + size(i) - 1, i)
  inverse (do, ii) -> (ii, do + ii - (size(i) - 1))
}
format hyb(c, k) over (i, j) {
  partition j into c {
    bucket i by length into 1, 2 .. 2^k as width split {
      part rows_ell(width)
    }
  }
}
format chosen(m: set) over (i, j) {
  part inside = ell where (held(m) == 1)
  part outside = csr
}
`

export const KERNELS = `
kernel multiply(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate multiply [i, j, f] as SRS {
    C[i, f] += A[i, j] * B[j, f]
  }
}
kernel sample(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer V: f32[i, j] in
  buffer X: f32[i, f] in
  buffer Y: f32[jd, f] in
  buffer O: f32[i, j] out
  iterate sample [i, j, f] as SSR {
    O[i, j] += (A[i, j] + V[i, j]) * X[i, f] * Y[j, f]
  }
}
kernel scale(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] inout
  iterate scale [i, j] as SS {
    A[i, j] = A[i, j] * 2
  }
}
`

/** What `as` is given, by the kind of thing that goes wrong in it. */
export const CHOICES: readonly (readonly [string, ...(number | string)[]])[] = [
  ['csr'],
  ['coo'],
  ['ell'],
  ['ell_at', 0],
  ['bsr', 3],
  ['sell', 2, 4],
  ['sr_bcrs', 2, 3],
  ['dia'],
  ['vbr', 'rows', 'cols'],
  ['bitmap_blocks'],
  ['hyb', 1, 2],
  ['hyb', 3, 1],
  ['bsr(2) where (density(2) >= 0.5) + csr'],
  ['band(1, 1) + ell'],
  ['coo where (top(2 by i)) + csr'],
  ['sell(2, 4) where (count(j by i) > 2) + dia where (i == j and count(j by i) <= 2) + coo'],
  ['chosen', 'mask'],
]
