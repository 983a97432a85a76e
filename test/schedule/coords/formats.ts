/** Formats and compositions of many kinds, and kernels of many kinds, all over rows i and columns j. */
import { standard } from '../../support/packaged-formats.ts'

export const FORMATS = `
${standard('csr', 'dcsr', 'csc', 'coo', 'ell', 'bsr', 'sell', 'rows_ell', 'pieces_ell', 'sr_bcrs', 'band', 'vbr')}
format dia over (i, j) {
  axis do = sparse_variable(i + j - 1)
  axis ii = dense_fixed(i)
  map (i, j) -> (j - i + size(i) - 1, i)
  inverse (do, ii) -> (ii, do + ii - (size(i) - 1))
}
format bitmap_blocks over (i, j) {
  axis io = dense_fixed(ceildiv(i, 2))
  axis jo = sparse_variable(io, ceildiv(j, 4))
  axis e = bitmap(jo, 8)
  map (i, j) -> (i / 2, j / 4, i % 2 * 4 + j % 4)
  inverse (io, jo, e) -> (io * 2 + e / 4, jo * 4 + e % 4)
}
format by_minhash over (i, j) {
  sort i by least(j * 5 % 8 by i) * 8 + least((j * 3 + 1) % 8 by i) -> (place, row)
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (place[i], j)
  inverse (io, jo) -> (row[io], jo)
}
format flat over (i, j) {
  axis e = sparse_variable(i * j)
  map (i, j) -> (i * size(j) + j)
  inverse (e) -> (e / size(j), e % size(j))
}
format hyb(c, k) over (i, j) {
  partition j into c {
    bucket i by length into 1, 2 .. 2^k as width split {
      part rows_ell(width)
    }
  }
}
format by_length over (i, j) {
  bucket i by length into 2, 4, 16 as width {
    part ell(width)
  }
}
format ranges(c) over (i, j) {
  partition i into c { part csr }
}
format block_ranges(c) over (i, j) {
  partition i into c { part bsr(2) }
}
format column_lines(c) over (i, j) {
  partition j into c { part csc }
}
format ranges_by_length over (i, j) {
  partition i into 3 {
    part few = csr where (count(j by i) <= 2)
    part ell
  }
}
format two_sides over (i, j) {
  partition j into 2 { part csr }
}
format nested over (i, j) {
  partition i into 2 as p {
    part blocks = bsr(2) where (density(2) >= 0.5)
    bucket i by length into 1, 2 as width split { part pieces_ell(width) }
  }
}
`

/** What may stand after \`as\`. */
export const USES = [
  'csr',
  'dcsr',
  'csc',
  'coo',
  'ell',
  'bsr(2)',
  'sell(2, 4)',
  'rows_ell(2)',
  'pieces_ell(2)',
  'sr_bcrs(2, 2)',
  'dia',
  'vbr(rows, cols)',
  'bitmap_blocks',
  'flat',
  'by_minhash',
  'hyb(1, 1)',
  'hyb(2, 2)',
  'by_length',
  'ranges(3)',
  'ranges(4)',
  'block_ranges(3)',
  'column_lines(3)',
  'ranges_by_length',
  'two_sides',
  'nested',
  'bsr(2) where (density(2) >= 0.75) + csr',
  'band(1, 1) + csr',
  'dia where (i == j) + csc',
  'csr where (top(2 by i)) + ell',
] as const

const AXES = `
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis c = dense_fixed(n)
  axis f = dense_fixed(2)
  buffer A: i32[i, j] in
`

const kernel = (buffers: string, body: string): string =>
  `kernel k(m: size, n: size) {${AXES}${buffers}\n${body}\n}`

export const KERNELS: Readonly<Record<string, string>> = {
  'sum per row': kernel('buffer y: i32[i] out', 'iterate sum [i, j] as SR { y[i] += A[i, j] }'),
  'max per row': kernel('buffer y: i32[i] out', 'iterate most [i, j] as SR { y[i] max= A[i, j] }'),
  'number per row': kernel('buffer y: i32[i] out', 'iterate number [i, j] as SR { y[i] += 1 }'),
  'product with a dense matrix': kernel(
    'buffer B: i32[c, f] in\nbuffer y: i32[i, f] out',
    'iterate sum [i, j, f] as SRS { y[i, f] += A[i, j] * B[j, f] }',
  ),
  'sampled product': kernel(
    'buffer X: i32[i, f] in\nbuffer B: i32[c, f] in\nbuffer D: i32[i, j] out',
    'iterate dot [i, j, f] as SSR { D[i, j] += A[i, j] * X[i, f] * B[j, f] }',
  ),
  'product at a pattern': kernel(
    'buffer X: i32[i, f] in\nbuffer B: i32[c, f] in\nbuffer D: i32[i, j] out',
    'iterate dot [i, j, f] as SSR { D[i, j] += X[i, f] * B[j, f] + 1 }',
  ),
  'copy in the structure': kernel(
    'buffer D: i32[i, j] out',
    'iterate copy [i, j] as SS { let a = A[i, j]\nif (a > 3) { D[i, j] = a } else { D[i, j] = 0 - a } }',
  ),
  'nest of reductions': kernel(
    'buffer M: i32[i] local\nbuffer Z: i32[i] local\nbuffer P: i32[i, j] out',
    `iterate row [i] as S {
      iterate peak [j] as R { M[i] max= A[i, j] }
      iterate weight [j] as S { P[i, j] = A[i, j] - max(M[i], -100) }
      iterate total [j] as R { Z[i] += P[i, j] }
      iterate scale [j] as S { P[i, j] = P[i, j] * 3 - Z[i] }
    }`,
  ),
  'nest with lets and conditions': kernel(
    'buffer x: i32[i] in\nbuffer y: i32[i] out\nbuffer z: i32[i] out',
    `iterate row [i] as S {
      let a = x[i] * 2
      y[i] = a
      if (a > 4) {
        let b = a + 1
        iterate weighted [j] as R where (b > 7) { z[i] += b * A[i, j] }
      } else {
        iterate plain [j, f] as RR { z[i] += A[i, j] + 0 * f }
      }
      y[i] = y[i] + z[i] + a
    }`,
  ),
  transposed: kernel(
    'buffer x: i32[i] in\nbuffer y: i32[c] out',
    'iterate scatter [i, j] as RR { y[j] += A[i, j] * x[i] }',
  ),
  'scalar total': kernel('buffer t: i32[] out', 'iterate total [i, j] as RR { t[] += A[i, j] }'),
  'largest with its column': `monoid best(v: i32, at: i32) {
    identity (-2147483648, 2147483647)
    combine (a, b) = (max(a.v, b.v), select(a.v > b.v, a.at, select(b.v > a.v, b.at, min(a.at, b.at))))
  }
  ${kernel(
    'buffer v: i32[i] out\nbuffer at: i32[i] out',
    'iterate find [i, j] as SR { (v[i], at[i]) best= (A[i, j], j) }',
  )}`,
  'dense copy': kernel('buffer D: i32[i, c] out', 'iterate copy [i, j] as SS { D[i, j] = A[i, j] }'),
  'other coordinates': kernel(
    'buffer y: i32[i] out\nbuffer d: i32[i, c] out',
    `iterate pairs [i, j] as SR { y[i] += A[i, j] * A[m - 1 - i, j] }
     iterate shifted [i, c] as SS { d[i, c] = A[i, c - 1] * 10 + A[i, c + 1] }`,
  ),
}

const PADS = [
  'bsr(2)',
  'sr_bcrs(2, 2)',
  'dia',
  'vbr(rows, cols)',
  'block_ranges(3)',
  'nested',
  'bsr(2) where (density(2) >= 0.75) + csr',
  'band(1, 1) + csr',
  'dia where (i == j) + csc',
]
const REPEATS = [
  'coo',
  'sell(2, 4)',
  'rows_ell(2)',
  'pieces_ell(2)',
  'bitmap_blocks',
  'hyb(1, 1)',
  'hyb(2, 2)',
]
const ASKS = ['sell(2, 4)', 'by_minhash', 'pieces_ell(2)', 'sr_bcrs(2, 2)', 'vbr(rows, cols)', 'nested']
const padding = new Map(PADS.map((f) => [f, 'schedule/format-padding']))

/** What is refused, and how: kernel → use → code. */
export const REFUSED: Readonly<Record<string, ReadonlyMap<string, string>>> = {
  'max per row': padding,
  'number per row': padding,
  'nest of reductions': padding,
  'largest with its column': padding,
  'dense copy': new Map([...padding, ...REPEATS.map((f) => [f, 'schedule/format-repeats'] as const)]),
  'other coordinates': new Map(ASKS.map((f) => [f, 'schedule/format-lookup'])),
}
