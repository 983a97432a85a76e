/** Formats whose tiles gather rows: those that a list names, and those of a sort. */

/** Groups of g rows with lists of s of the columns that any of them has. */
export const panelsText = (padding = ''): string => `format panels(g, s) over (i, k) {
  axis io = dense_fixed(ceildiv(i, g))
  axis go = dense_variable(io, k)
  axis ko = sparse_fixed(go, k, s)${padding}
  axis ii = dense_fixed(g)
  map (i, k) -> (i / g, rank(k by i / g) / s, k, i % g)
  inverse (io, go, ko, ii) -> (io * g + ii, ko)
}`

/** Groups of g rows, the longest first. */
export const SORTED_TILES = `format sorted(g) over (i, k) {
  sort i by -count(k by i) -> (place, row)
  axis io = dense_fixed(ceildiv(i, g))
  axis ii = dense_fixed(g)
  axis ko = sparse_variable(ii, k)
  map (i, k) -> (place[i] / g, place[i] % g, k)
  inverse (io, ii, ko) -> (row[io * g + ii], ko)
}`
