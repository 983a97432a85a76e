/** Formats and compositions as users write them. */

export const CSR = `format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`
export const BSR = `format bsr(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(jo, b)
  axis ji = dense_fixed(ii, b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
`
export const SELL = `format sell(c, s) over (i, j) {
  sort i by -count(j by i) within s -> (place, row)
  axis so = dense_fixed(ceildiv(i, c))
  axis k = dense_variable(so, j)
  axis ii = dense_fixed(k, c)
  axis jo = sparse_fixed(ii, j, 1)
  map (i, j) -> (place[i] / c, rank(j by i), place[i] % c, j)
  inverse (so, k, ii, jo) -> (row[so * c + ii], jo)
}
`
export const ROWS_ELL = `format rows_ell(w) over (i, j) {
  axis io = sparse_variable(i) nonunique
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`
export const PIECES_ELL = `format pieces_ell(w) over (i, j) {
  axis io = sparse_variable(i)
  axis p = dense_variable(io, j)
  axis jo = sparse_fixed(p, j, w)
  map (i, j) -> (i, rank(j by i) / w, j)
  inverse (io, p, jo) -> (io, jo)
}
`
export const SR_BCRS = `format sr_bcrs(t, g) over (i, j) {
  axis so = dense_fixed(ceildiv(i, t))
  axis go = dense_variable(so, j)
  axis jo = sparse_fixed(go, j, g)
  axis ii = dense_fixed(jo, t)
  map (i, j) -> (i / t, rank(j by i / t) / g, j, i % t)
  inverse (so, go, jo, ii) -> (so * t + ii, jo)
}
`
export const DIA = `format dia over (i, j) {
  axis do = sparse_variable(i + j - 1)
  axis ii = dense_fixed(i)
  map (i, j) -> (j - i + size(i) - 1, i)
  inverse (do, ii) -> (ii, do + ii - (size(i) - 1))
}
`
export const BAND = `format band(l, u) over (i, j) {
  axis io = dense_fixed(i)
  axis bo = dense_fixed(l + u + 1)
  map (i, j) -> (i, j - i + l)
  inverse (io, bo) -> (io, io + bo - l)
  where (i - j <= l and j - i <= u)
}
`
export const VBR = `format vbr(rows: list, cols: list) over (i, j) {
  axis io = dense_fixed(segments(rows))
  axis jo = sparse_variable(io, segments(cols))
  axis ii = dense_variable(jo, i)
  axis ji = dense_variable(ii, j)
  map (i, j) -> (find(rows, i), find(cols, j), i - rows[find(rows, i)], j - cols[find(cols, j)])
  inverse (io, jo, ii, ji) -> (rows[io] + ii, cols[jo] + ji)
}
`
export const BITMAP = `format bitmap_blocks over (i, j) {
  axis io = dense_fixed(ceildiv(i, 8))
  axis jo = sparse_variable(io, ceildiv(j, 8))
  axis e = bitmap(jo, 64)
  map (i, j) -> (i / 8, j / 8, i % 8 * 8 + j % 8)
  inverse (io, jo, e) -> (io * 8 + e / 8, jo * 8 + e % 8)
}
`
export const HYB = `${ROWS_ELL}
format hyb(c, k) over (i, j) {
  partition j into c {
    bucket i by length into 1, 2 .. 2^k as width split {
      part rows_ell(width)
    }
  }
}
`
export const DENSE_BLOCKS = `${CSR}${BSR}
format dense_blocks(b, t: real) over (i, j) {
  part blocks = bsr(b) where (density(b) >= t)
  part csr
}
`
export const BAND_REST = `${CSR}${BAND}
format band_rest(l, u) over (i, j) {
  part band(l, u)
  part csr
}
`
export const TOP = `${CSR}${ROWS_ELL}
format top_rest(n) over (i, j) {
  part rows_ell(n) where (top(n by i))
  part csr
}
`
export const NESTED = `${HYB}${BSR}
format nested(c, b) over (i, j) {
  partition i into c as p {
    part blocks = bsr(b) where (count(i, j by i / b, j / b) >= 2 + p)
    part hyb(2, 1)
  }
}
`

/** Segments of rows, by a list; of each the columns that any of its rows has, dense. */
export const segmentsOfRows = (name: string) => `format ${name}(rows: list) over (i, j) {
  axis io = dense_fixed(segments(rows))
  axis jo = sparse_variable(io, j)
  axis ii = dense_variable(jo, i)
  map (i, j) -> (find(rows, i), j, i - rows[find(rows, i)])
  inverse (io, jo, ii) -> (rows[io] + ii, jo)
}
`

/** The sum of each row of a sparse matrix. */
export const ROW_SUMS = `kernel sum(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate sum [i, j] as SR { C[i] += A[i, j] }
}
`
