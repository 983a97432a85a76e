/** A sparse matrix times a dense one, as text: what spaces, searches and reports of tests are of. */
export const PRODUCT = `kernel product(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j]  in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f]  out
  iterate sum [i, j, f] as SRS {
    C[i, f] += A[i, j] * B[j, f]
  }
}
`

/** Sums of the rows of a sparse matrix. */
export const ROW_SUMS = `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate s [i, j] as SR { C[i] += A[i, j] }
}`
