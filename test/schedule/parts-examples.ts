/** Examples of `as` for formats with several parts: programs, steps, and the printed results. */

const FORMATS = `format rows(w) over (i, j) {
  axis io = sparse_variable(i) nonunique
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format plain over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`

/**
 * A format with several parts gives one iteration for each part. The iterator over rows becomes a reduction if a part
 * may store a row several times.
 */
export const parts = {
  program: `${FORMATS}
format by_length(k) over (i, j) {
  bucket i by length into 1, k as width split { part rows(width) }
}
kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS {
    C[i, f] += A[i, j] * B[j, f]
  }
}`,
  steps: 'A as by_length(4)',
  after: `kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  axis io_w1 = sparse_variable(m) nonunique
  axis jo_w1 = sparse_fixed(io_w1, n, 1)
  axis io_w4 = sparse_variable(m) nonunique
  axis jo_w4 = sparse_fixed(io_w4, n, 4)
  buffer A_w1: f32[io_w1, jo_w1] in
  buffer A_w4: f32[io_w4, jo_w4] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum_w1 [io_w1, jo_w1, f] as RRS {
    C[io_w1, f] += A_w1[io_w1, jo_w1] * B[jo_w1, f]
  }
  iterate sum_w4 [io_w4, jo_w4, f] as RRS {
    C[io_w4, f] += A_w4[io_w4, jo_w4] * B[jo_w4, f]
  }
}`,
}

/** A nest of iterations is distributed over the parts. Outputs with the structure of A are split in the same way. */
export const nest = {
  program: `${FORMATS}
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer M: f32[i] local
  buffer P: f32[i, j] out
  iterate row [i] as S {
    iterate peak [j] as R {
      M[i] max= A[i, j]
    }
    iterate scale [j] as S {
      P[i, j] = A[i, j] / M[i]
    }
  }
}`,
  steps: 'A as rows(2) where (top(2 by i)) + plain',
  after: `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis io_rows = sparse_variable(m) nonunique
  axis jo_rows = sparse_fixed(io_rows, n, 2)
  axis io_plain = dense_fixed(m)
  axis jo_plain = sparse_variable(io_plain, n)
  buffer A_rows: f32[io_rows, jo_rows] in
  buffer A_plain: f32[io_plain, jo_plain] in
  buffer M: f32[i] local
  buffer P_rows: f32[io_rows, jo_rows] out
  buffer P_plain: f32[io_plain, jo_plain] out
  iterate peak_rows [io_rows, jo_rows] as RR {
    M[io_rows] max= A_rows[io_rows, jo_rows]
  }
  iterate peak_plain [io_plain, jo_plain] as SR {
    M[io_plain] max= A_plain[io_plain, jo_plain]
  }
  iterate scale_rows [io_rows, jo_rows] as SS {
    P_rows[io_rows, jo_rows] = A_rows[io_rows, jo_rows] / M[io_rows]
  }
  iterate scale_plain [io_plain, jo_plain] as SS {
    P_plain[io_plain, jo_plain] = A_plain[io_plain, jo_plain] / M[io_plain]
  }
}`,
}
