/** Formats and compositions that use every part of the language. */
export const FORMATS = `
format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format bsr(b = 2) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
format sell(c, s) over (i, j) {
  sort i by -count(j by i) within s -> (place, row)
  axis so = dense_fixed(ceildiv(i, c))
  axis k  = dense_variable(so, j)
  axis ii = dense_fixed(k, c)
  axis jo = sparse_fixed(ii, j, 1)
  map (i, j) -> (place[i] / c, rank(j by i), place[i] % c, j)
  inverse (so, k, ii, jo) -> (row[so * c + ii], jo)
}
format rows_ell(w) over (i, j) {
  axis io = sparse_variable(i) nonunique
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format dia over (i, j) {
  axis do = sparse_variable(i + j - 1)
  axis ii = dense_fixed(i)
  map (i, j) -> (j - i + size(i) - 1, i)
  inverse (do, ii) -> (ii, do + ii - (size(i) - 1))
}
format band(l, u) over (i, j) {
  axis io = dense_fixed(i)
  axis bo = dense_fixed(l + u + 1)
  map (i, j) -> (i, j - i + l)
  inverse (io, bo) -> (io, io + bo - l)
  where (i - j <= l and j - i <= u)
}
format vbr(rows: list, cols: list) over (i, j) {
  axis io = dense_fixed(segments(rows))
  axis jo = sparse_variable(io, segments(cols))
  axis ii = dense_variable(jo, i)
  axis ji = dense_variable(ii, j)
  map (i, j) -> (find(rows, i), find(cols, j), i - rows[find(rows, i)], j - cols[find(cols, j)])
  inverse (io, jo, ii, ji) -> (rows[io] + ii, cols[jo] + ji)
}
format bitmap_blocks over (i, j) {
  axis io = dense_fixed(ceildiv(i, 8))
  axis jo = sparse_variable(io, ceildiv(j, 8))
  axis e  = bitmap(jo, 64)
  map (i, j) -> (i / 8, j / 8, i % 8 * 8 + j % 8)
  inverse (io, jo, e) -> (io * 8 + e / 8, jo * 8 + e % 8)
}
format padded(w: size) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w) full compact
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format hyb(c, k) over (i, j) {
  partition j into c as p {
    bucket i by length into 1, 2 .. 2^k as width split {
      part rows_ell(width)
    }
  }
}
format dense_blocks(b, t: real = 0.5) over (i, j) {
  part blocks = bsr(b) where (density(b) >= t)
  part csr
}
format by_mask(m: set) over (i, j) {
  part bsr(4) where (held(m))
  part csr
}
format lists(r: list) over (i, j) {
  part vbr(r, r) where (find(r, i) == find(r, j))
  part csr
}
`
