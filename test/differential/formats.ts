/** Formats for generated tensors: the packaged ones, and some that a user could have written. */
import type { Choices } from '../support/choices.ts'

/** Declarations that stand in every generated file. */
export const FORMATS = `
format columns_ell(w: size) over (i, j) {
  axis jo = dense_fixed(j)
  axis io = sparse_fixed(jo, i, w)
  map (i, j) -> (j, i)
  inverse (jo, io) -> (io, jo)
}
format tall(b, c) over (i, j) {
  axis io = sparse_variable(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, c))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(c)
  map (i, j) -> (i / b, j / c, i % b, j % c)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * c + ji)
}
format shortest_first(w: size) over (i, j) {
  sort i by count(j by i) within 4 -> (place, row)
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (place[i], j)
  inverse (io, jo) -> (row[io], jo)
}
format banks(c) over (i, j) {
  axis ro = dense_fixed(c)
  axis io = dense_fixed(ro, ceildiv(i, c))
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i % c, i / c, j)
  inverse (ro, io, jo) -> (io * c + ro, jo)
}
format by_parity over (i, j) {
  part even = csr where (i % 2 == 0)
  part odd = columns_ell
}
format busy_blocks(b) over (i, j) {
  part blocks = tall(b, 2) where (count(i, j by i / b, j / 2) >= 2)
  part diagonal = csc where (i == j and count(i, j by i / b, j / 2) < 2)
  part coo
}
format slabs over (r, i, j) {
  axis jo = dense_fixed(j)
  axis ro = sparse_variable(jo, r)
  axis io = sparse_variable(ro, i)
  map (r, i, j) -> (j, r, i)
  inverse (jo, ro, io) -> (ro, io, jo)
}
`

const MATRICES = [
  'csr',
  'bsr(2)',
  'dcsr',
  'csc',
  'coo',
  'ell',
  'hyb(1, 1)',
  'by_length',
  'sell(2, 4)',
  'sr_bcrs(2, 2)',
  'dcsc',
  'rows_ell(2)',
  'pieces_ell(2)',
  'gcoo(2)',
  'bsr_by_length(2)',
  'dbsr(2)',
  'bitmap_blocks',
  'dia',
  'ragged',
  'banded',
  'ell_at(0)',
  'hyb(2, 2)',
  'hyb_pieces(2, 1)',
  'dense_blocks(2, 0.5)',
  'band_rest(1, 0)',
  'diagonal_rest',
  'top_rest(1)',
  'rows_by_length(1)',
  'strided_rest(2)',
  'column_ranges(2)',
  'column_ranges_by_length(2)',
  'bsr_groups_by_length(2, 2)',
  'nm(2, 2)',
  'nm(1, 4)',
  'columns_ell',
  'tall(3, 2)',
  'shortest_first',
  'banks(2)',
  'by_parity',
  'busy_blocks(2)',
  'csf',
  'coo_n',
  'blocks_n(2)',
  'blocks_n(1)',
  'bsr(3)',
  'bsr(1)',
  'bsr(2) where (density(2) >= 0.5) + csr',
  'ell(2) where (top(2 by i)) + coo',
  'csr where (i < j) + dcsc',
  'csr where (largest() < 3) + hyb(1, 1)',
]
const CUBES = [
  'csf',
  'coo_n',
  'blocks_n(2)',
  'blocks_n(1)',
  'relation_rows(2)',
  'relation_buckets(1)',
  'row_groups(2)',
  'row_tiles(4)',
  'slabs',
  'csf where (r < 1) + coo_n',
]
const LISTS = ['csf', 'coo_n', 'blocks_n(2)']

export const formatFor = (c: Choices, rank: number): string =>
  c.pick(rank === 2 ? MATRICES : rank === 3 ? CUBES : LISTS)
