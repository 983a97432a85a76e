/** Formats and compositions that use every part of the language. */
import { standard } from '../support/packaged-formats.ts'
export const FORMATS = `
${standard('csr', 'sell', 'rows_ell', 'band', 'vbr', 'bitmap_blocks')}
format bsr(b = 2) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
format dia over (i, j) {
  axis do = sparse_variable(i + j - 1)
  axis ii = dense_fixed(i)
  map (i, j) -> (j - i + size(i) - 1, i)
  inverse (do, ii) -> (ii, do + ii - (size(i) - 1))
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
