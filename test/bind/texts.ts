/** Formats and compositions of every kind, and kernels that read, write and share what is stored in them. */
export const FORMATS = `
format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format coo over (i, j) {
  axis io = sparse_variable(i) nonunique
  axis jo = sparse_fixed(io, j, 1)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format ell(w: size) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format bsr(b) over (i, j) {
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
  axis k = dense_variable(so, j)
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
format sr_bcrs(t, g) over (i, j) {
  axis so = dense_fixed(ceildiv(i, t))
  axis go = dense_variable(so, j)
  axis jo = sparse_fixed(go, j, g)
  axis ii = dense_fixed(jo, t)
  map (i, j) -> (i / t, rank(j by i / t) / g, j, i % t)
  inverse (so, go, jo, ii) -> (so * t + ii, jo)
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
  axis e = bitmap(jo, 64)
  map (i, j) -> (i / 8, j / 8, i % 8 * 8 + j % 8)
  inverse (io, jo, e) -> (io * 8 + e / 8, jo * 8 + e % 8)
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
